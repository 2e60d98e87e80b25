#include "sidecar/init/cgroup.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/core/read_file.h"

namespace bsp::init {
namespace {

std::optional<std::uint64_t> stat_value(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
    std::uint64_t value = 0;
    const char* const end = line.data() + line.size();
    if (std::from_chars(line.data() + name.size() + 1, end, value).ptr == end) return value;
  }
  return std::nullopt;
}

// The first of these files that exists, which depends on the cgroup version.
std::optional<std::string> first_of(std::initializer_list<const char*> paths) {
  for (const char* path : paths)
    if (auto text = read_file(path)) return std::move(*text);
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> throttled_ns_in(std::string_view cpu_stat) {
  if (const auto us = stat_value(cpu_stat, "throttled_usec")) return *us * 1000;
  return stat_value(cpu_stat, "throttled_time");
}

std::optional<std::uint64_t> throttled_ns() {
  return first_of({"/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/cpu.stat"})
      .and_then(throttled_ns_in);
}

std::optional<std::uint64_t> memory_kills_in(std::string_view memory_events) {
  return stat_value(memory_events, "oom_kill");
}

std::optional<std::uint64_t> memory_kills() {
  return first_of({"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"})
      .and_then(memory_kills_in);
}

}  // namespace bsp::init
