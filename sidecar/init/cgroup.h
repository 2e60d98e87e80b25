// What this container's limits have done to it so far, read from its cgroup.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bsp::init {

// Time throttled by the CPU limit: cpu.stat of cgroup v2 (throttled_usec) or v1 (throttled_time, in ns); nullopt if
// it has neither, because there is no limit.
std::optional<std::uint64_t> throttled_ns_in(std::string_view cpu_stat);
// This container's own, if its cgroup is mounted.
std::optional<std::uint64_t> throttled_ns();

// Number of processes that the kernel killed because the memory limit was reached: memory.events of cgroup v2 or
// memory.oom_control of v1 (oom_kill in both); nullopt if neither has the count.
std::optional<std::uint64_t> memory_kills_in(std::string_view memory_events);
std::optional<std::uint64_t> memory_kills();

}  // namespace bsp::init
