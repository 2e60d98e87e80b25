#include "sidecar/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/core/fd.h"

namespace bsp::sidecar {

Result<void> write_file(const std::string& path, const std::string& text, mode_t mode) {
  std::string temporary = path + ".new";
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return fail_errno("writing " + temporary);
  std::string_view left = text;
  while (!left.empty()) {
    ssize_t n = ::write(fd.get(), left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("writing " + temporary);
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fchmod(fd.get(), mode) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0)
    return fail_errno("writing " + path);
  return {};
}

Result<void> make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return fail_errno("making " + path);
  // mkdir's mode goes through the umask. One that is somebody else's already is as it should be.
  if (::chmod(path.c_str(), mode) != 0 && errno != EPERM) return fail_errno("making " + path);
  return {};
}

}  // namespace bsp::sidecar
