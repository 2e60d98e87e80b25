#include "base/core/clock.h"

#include <format>
#include <sstream>

namespace bsp {

std::string to_rfc3339(Time t) { return std::format("{:%FT%T}Z", std::chrono::floor<std::chrono::microseconds>(t)); }

Time from_rfc3339(const std::string& text) {
  std::istringstream in(text);
  std::chrono::sys_time<std::chrono::microseconds> t;
  in >> std::chrono::parse("%FT%TZ", t);
  // Years 1678 to 2262: 64 bits of nanoseconds since 1970 reach no further.
  constexpr auto first = std::chrono::ceil<std::chrono::microseconds>(Time::min());
  constexpr auto last = std::chrono::floor<std::chrono::microseconds>(Time::max());
  return in && t >= first && t <= last ? Time(t) : Time{};
}

}  // namespace bsp
