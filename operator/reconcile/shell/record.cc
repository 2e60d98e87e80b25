#include "operator/reconcile/shell/record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <format>

#include "base/core/fd.h"
#include "base/core/log.h"

namespace bsp::reconcile {
namespace {

Result<Fd> open_record(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return fail_errno("opening " + path);
  return fd;
}

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("writing " + path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

Result<void> append_line(const std::string& path, std::string_view line) {
  BSP_TRY(const Fd fd, open_record(path));
  // Against another operator that writes the same file; freed when the Fd closes. A terminal or pipe has no lock.
  while (::flock(fd.get(), LOCK_EX) < 0 && errno == EINTR) continue;
  struct stat before{};
  if (::fstat(fd.get(), &before) < 0) return fail_errno("reading " + path);
  const bool file = S_ISREG(before.st_mode);
  std::string text;
  char last = '\n';
  if (file && before.st_size > 0 && ::pread(fd.get(), &last, 1, before.st_size - 1) != 1)
    return fail_errno("reading " + path);
  if (last != '\n') text += '\n';
  text += line;
  text += '\n';
  auto written = write_all(fd.get(), text, path);
  if (!written && file && ::ftruncate(fd.get(), before.st_size) < 0)
    return std::unexpected(written.error().in("a part of a line was left"));
  return written;
}

Result<void> check_appendable(const std::string& path) {
  return open_record(path).transform([](const Fd&) {});
}

std::string record_path(const std::string& directory, const std::string& name_space, const std::string& job) {
  return std::format("{}/{}_{}.jsonl", directory, name_space, job);
}

void record_line(const std::string& path, const std::string& line) {
  if (auto written = append_line(path, line); !written)
    log_warning("a rescheduling call could not be recorded", {{"file", path}, {"error", written.error().message}});
}

}  // namespace bsp::reconcile
