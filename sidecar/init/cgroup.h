// What the limits of this container have done to it so far, as its cgroup tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bsp::init {

// Held back because of the CPU limit: cpu.stat of cgroup v2 (throttled_usec) or v1 (throttled_time, in ns); nullopt if
// it says neither: nothing limits us.
std::optional<std::uint64_t> throttled_ns_in(std::string_view cpu_stat);
// The container's own, as far as it is mounted.
std::optional<std::uint64_t> throttled_ns();

// Processes that the kernel killed because the memory limit was reached: memory.events of cgroup v2 or
// memory.oom_control of v1 (oom_kill in both); nullopt if it says nothing of it.
std::optional<std::uint64_t> memory_kills_in(std::string_view memory_events);
std::optional<std::uint64_t> memory_kills();

}  // namespace bsp::init
