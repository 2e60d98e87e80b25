#include "base/core/clock.h"

#include <format>
#include <sstream>

namespace bsp {

std::string to_rfc3339(Time t) {
  return std::format("{:%FT%T}Z", std::chrono::floor<std::chrono::microseconds>(t));
}

Time from_rfc3339(const std::string& text) {
  std::istringstream in(text);
  std::chrono::sys_time<std::chrono::microseconds> t;
  in >> std::chrono::parse("%FT%TZ", t);
  return in ? Time(t) : Time{};
}

}  // namespace bsp
