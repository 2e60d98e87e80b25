#include "operator/cli/exit_code.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace bsp::cli {

int report_error(const Error& error, const char* program) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program, error.message.c_str());
  return error.code == ErrorCode::kInvalid ? kUsage : kFailed;
}

void keep_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) < 0) return;  // the lowest number that is free: fd
}

int ended(int code, const char* program) {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return code;
  if (code != kDone) return code;
  if (errno == EPIPE) return kSignalled + SIGPIPE;
  std::fprintf(stderr, "%s: writing standard output: %s\n", program,
               errno != 0 ? std::strerror(errno) : "not all of it could be written");
  return kFailed;
}

}  // namespace bsp::cli
