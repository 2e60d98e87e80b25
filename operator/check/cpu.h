// The CPU features that libraries ask for when a program starts. A rank that found one uses it for the rest of its life, so the CPUs
// that it moves to must have it. Pure, except read_cpu().
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bsp::checking {

struct Cpu {
  int level = 1;                      // of x86-64-v1 to v4, as the psABI defines them
  std::vector<std::string> features;  // beyond that level
};

// `flags`: as /proc/cpuinfo lists them.
Cpu cpu_of(std::string_view flags);
// This machine's first CPU.
Cpu read_cpu();

}  // namespace bsp::checking
