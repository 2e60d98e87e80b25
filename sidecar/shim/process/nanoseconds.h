// Times in nanoseconds that stay within their range, which is the kernel's (KTIME_MAX, 292 years), instead of overflowing: what is never
// due remains so.
#pragma once

#include <time.h>

#include <cstdint>
#include <limits>

namespace bsp::shim {

inline constexpr std::int64_t kNsOfSecond = 1'000'000'000;
inline constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kEarliest = std::numeric_limits<std::int64_t>::min();

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

constexpr std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return !__builtin_add_overflow(a, b, &sum) ? sum : a > 0 ? kLatest : kEarliest;
}

constexpr std::int64_t difference_of(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  return !__builtin_sub_overflow(a, b, &difference) ? difference : a >= 0 ? kLatest : kEarliest;
}

constexpr std::int64_t product_of(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) ? product : (a > 0) == (b > 0) ? kLatest : kEarliest;
}

constexpr std::int64_t in_ns(std::int64_t seconds, std::int64_t ns) {
  return sum_of(product_of(seconds, kNsOfSecond), ns);
}

// 0 <= tv_nsec, also before 0.
constexpr timespec as_timespec(std::int64_t ns) {
  const bool borrows = ns % kNsOfSecond < 0;
  return {.tv_sec = ns / kNsOfSecond - (borrows ? 1 : 0), .tv_nsec = ns % kNsOfSecond + (borrows ? kNsOfSecond : 0)};
}

// The kernel refuses other times, so they must reach it as they are.
constexpr bool is_time(const timespec& t) { return t.tv_sec >= 0 && t.tv_nsec >= 0 && t.tv_nsec < kNsOfSecond; }

constexpr timespec later(const timespec& t, std::int64_t ns) {
  return as_timespec(sum_of(in_ns(t.tv_sec, t.tv_nsec), ns));
}

}  // namespace bsp::shim
