#include "sidecar/shim/process/message.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include "crds/names.h"
#include "crds/refusal.h"
#include "sidecar/shim/process/run_dir.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

using Line = std::array<char, 1024>;

Line print(const char* format, va_list arguments) {
  Line line{};
  char* const text = line.data();
  int used = state.rank >= 0 ? std::snprintf(text, line.size(), "bsp: rank %d: ", state.rank)
                             : std::snprintf(text, line.size(), "bsp: ");
  std::vsnprintf(text + used, line.size() - static_cast<unsigned>(used) - 1, format, arguments);
  std::fprintf(stderr, "%s\n", text);
  return line;
}

void write_refusal(const Line& line) {
  const std::string path = in_run_dir(names::kRunDir).append("/").append(names::kRefusalFile);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return;  // then it is in the log alone
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), std::strlen(line.data()));
  ::close(fd);
}

}  // namespace

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
}

void say_verdict(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const Line line = print(format, arguments);
  va_end(arguments);
  write_refusal(line);
}

void die(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
  std::fflush(nullptr);
  _exit(1);
}

void die_between_epochs(const char* what, const char* why) {
  refuse("%s %llu: %s: %s", names::kEpochFailed.data(), static_cast<unsigned long long>(state.epoch), what, why);
}

void refuse(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const Line line = print(format, arguments);
  va_end(arguments);
  write_refusal(line);
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace bsp::shim
