// Wall-clock and steady time as two types, and RFC 3339.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>

namespace bsp {

using Duration = std::chrono::nanoseconds;
// Wall-clock time, as objects store it for people and for Kubernetes. Never measure a timeout with it: most stored
// times come from another process, whose clock may be wrong, and our own clock may be set at any moment.
using Time = std::chrono::sys_time<std::chrono::nanoseconds>;

// This process's steady clock, which measures timeouts. A separate type, so that it can't be stored or compared with a
// Time. SteadyTime{} means never.
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// The machine's wall clock. Functions that decide take the time as a value instead.
struct SystemClock {
  [[nodiscard]] static Time now() { return std::chrono::system_clock::now(); }
};

inline double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
// 146 years: the sum of two fits. Nothing that others say becomes more.
inline constexpr Duration kLongest{std::int64_t{1} << 62};
// kLongest if it is longer, and none if it isn't a number: it may be made of figures that others report.
inline Duration from_seconds(double s) {
  constexpr auto kMost = static_cast<double>(kLongest.count());
  return std::isnan(s) ? Duration{} : Duration(static_cast<std::int64_t>(std::clamp(s * 1e9, -kMost, kMost)));
}

// RFC 3339 with microseconds, UTC, as metav1.MicroTime prints it: 2026-11-21T04:05:06.123456Z.
std::string to_rfc3339(Time t);
// Time{} if the text is not RFC 3339, or names a time before 1970 or after 2116: the difference of two times must fit into a
// Duration, and these come from others.
Time from_rfc3339(const std::string& text);

}  // namespace bsp
