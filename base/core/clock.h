// Wall-clock and steady time as two types, and RFC 3339.
#pragma once

#include <chrono>
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
inline Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

// RFC 3339 with microseconds, UTC, as metav1.MicroTime prints it: 2026-11-21T04:05:06.123456Z.
std::string to_rfc3339(Time t);
// Time{} if the text is not RFC 3339.
Time from_rfc3339(const std::string& text);

}  // namespace bsp
