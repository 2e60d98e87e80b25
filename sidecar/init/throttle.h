// How long the kernel has held this container back because of its CPU limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bsp::init {

// cpu.stat of cgroup v2 (throttled_usec) or v1 (throttled_time, in ns); nullopt if it says neither: nothing limits us.
std::optional<std::uint64_t> throttled_ns_in(std::string_view cpu_stat);
// The container's own, as far as it is mounted.
std::optional<std::uint64_t> throttled_ns();

}  // namespace bsp::init
