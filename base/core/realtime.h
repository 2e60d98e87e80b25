// Timestamps that processes in different containers compare: nanoseconds of CLOCK_REALTIME.
#pragma once

#include <chrono>
#include <cstdint>

namespace bsp {

inline std::uint64_t realtime_ns() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count());
}

}  // namespace bsp
