// The interface to SimGrid, which runs in a child process (child.h). Only inside.cc includes its headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/platform.h"

namespace bsp::sim {

// The request for one superstep, sent to the child …
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

// … and the answer: seconds since the superstep's start.
struct SuperstepTimes {
  struct Span {
    double begin, end;
  };
  std::vector<Span> works, transfers;  // in the order of the request
};

// Serves requests until the channel is closed. Throws if SimGrid does.
void serve_supersteps(const Platform& platform, int channel);

// Describes a platform file as JSON: {sets: [{name, hosts: [{name, speed, cores, properties}]}], T: [[s/byte]],
// properties}.
std::string describe_platform_file(const std::string& path);

}  // namespace bsp::sim
