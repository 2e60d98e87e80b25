// The command line of lattice_boltzmann.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/common/arguments.h"
#include "apps/lattice_boltzmann/strip.h"

namespace lbm {

struct Options : apps::Common {
  Channel channel;
  std::uint64_t supersteps = 100;
  std::uint64_t substeps = 1;         // time steps in one superstep
  std::string until;                  // the run ends before `supersteps` when rank 0 finds this file; empty: never
  std::map<int, double> work_factor;  // rank -> how often it repeats its collisions; default 1
  bool times = false;                 // print how long each superstep's slowest rank computed
  std::uint64_t ballast_mib = 0;      // incompressible memory that each rank allocates, and verifies at the end

  [[nodiscard]] double work_of(int rank) const;
};

std::vector<apps::Option> table(Options& options);

}  // namespace lbm
