#include "base/core/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/core/fd.h"

namespace bsp {

Result<std::string> read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno("reading " + path);
  std::string content;
  char buffer[16384];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("reading " + path);
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
  }
}

Result<std::string> read_file_if_any(const std::string& path) {
  auto text = read_file(path);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::string();
  return text;
}

}  // namespace bsp
