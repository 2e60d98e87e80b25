#include "sidecar/shim/message.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "sidecar/shim/state.h"

namespace bsp::shim {
namespace {

void print(const char* format, va_list arguments) {
  char text[1024];
  int used = state.rank >= 0 ? std::snprintf(text, sizeof text, "bsp: rank %d: ", state.rank)
                             : std::snprintf(text, sizeof text, "bsp: ");
  std::vsnprintf(text + used, sizeof text - static_cast<unsigned>(used) - 1, format, arguments);
  std::fprintf(stderr, "%s\n", text);
}

}  // namespace

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
}

void die(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace bsp::shim
