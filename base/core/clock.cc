#include "base/core/clock.h"

#include <format>
#include <sstream>

namespace bsp {

std::string to_rfc3339(Time t) { return std::format("{:%FT%T}Z", std::chrono::floor<std::chrono::microseconds>(t)); }

Time from_rfc3339(const std::string& text) {
  std::istringstream in(text);
  using Micro = std::chrono::sys_time<std::chrono::microseconds>;  // in nanoseconds, years beyond 2262 would overflow
  Micro t;
  in >> std::chrono::parse("%FT%TZ", t);
  constexpr auto last = std::chrono::floor<std::chrono::microseconds>(Time{kLongest});
  return in && t >= Micro{} && t <= last ? Time(t) : Time{};
}

}  // namespace bsp
