#include "base/core/own_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <format>

#include "base/core/write_all.h"

namespace bsp {

Result<Fd> open_own_file(const std::string& path, int flags) {
  // O_NONBLOCK: opening a FIFO must return at once, so that it can be refused.
  Fd fd(::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd && (errno == ELOOP || errno == ENXIO || errno == EISDIR))
    return fail(ErrorCode::kRefused, path + " is not a regular file");
  if (!fd) return fail_errno("opening " + path);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("opening " + path);
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::kRefused, path + " is not a regular file");
  if (info.st_uid != ::geteuid())
    return fail(ErrorCode::kRefused, std::format("{} is owned by user {}, not by us", path, info.st_uid));
  return fd;
}

Result<std::string> read_own_file(const std::string& path, std::size_t most) {
  BSP_TRY(const Fd fd, open_own_file(path, O_RDONLY));
  std::string content;
  char buffer[16384];
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("reading " + path);
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
    if (content.size() > most)
      return fail(ErrorCode::kInvalid, std::format("{} is larger than the limit of {} bytes", path, most));
  }
}

Result<NewFile> NewFile::beside(const std::string& path) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) return fail_errno("getrandom");
  std::string temporary = std::format("{}.{:016x}", path, number);
  Fd fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return fail_errno("creating " + temporary);
  return NewFile(std::move(fd), std::move(temporary), path);
}

NewFile::~NewFile() {
  if (fd_) ::unlink(temporary_.c_str());
}

Result<void> NewFile::publish(mode_t mode) {
  // fchmod, because open(2) applies the umask to its mode.
  if (::fchmod(fd_.get(), mode) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0)
    return fail_errno("writing " + path_);
  fd_.reset();
  return {};
}

Result<void> replace_own_file(const std::string& path, std::string_view text, mode_t mode) {
  BSP_TRY(NewFile file, NewFile::beside(path));
  if (!write_all(file.fd(), text)) return fail_errno("writing " + path);
  return file.publish(mode);
}

}  // namespace bsp
