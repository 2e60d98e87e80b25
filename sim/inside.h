// What happens inside SimGrid, in a child process (child.h): the only place that sees its headers is inside.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/platform.h"

namespace bsp::sim {

// One superstep on its way to the child …
struct SuperstepOrder {
  struct Work {
    std::uint32_t rank, processor;
    double instructions;
  };
  struct Transfer {                     // between different processors
    std::uint32_t from_rank, from, to;  // a rank, two processors
    std::uint32_t to_rank;
    double bytes;
  };
  std::vector<Work> works;
  std::vector<Transfer> transfers;
};

// … and back: seconds since its start.
struct SuperstepTimes {
  struct Span {
    double begin, end;
  };
  std::vector<Span> works, transfers;  // in the order of the order
};

// Serves orders until the channel ends. Throws if SimGrid does.
void serve_supersteps(const Platform& platform, int channel);

// A platform file as JSON: {sets: [{name, hosts: [{name, speed, cores, properties}]}], T: [[s/byte]], properties}.
std::string describe_platform_file(const std::string& path);

}  // namespace bsp::sim
