#include "apps/lattice_boltzmann/options.h"

namespace lbm {

double Options::work_of(int rank) const {
  const auto found = work_factor.find(rank);
  return found == work_factor.end() ? 1.0 : found->second;
}

std::vector<apps::Option> table(Options& o) {
  constexpr std::uint64_t kMost = 1'000'000'000;
  std::vector<apps::Option> list{
      apps::whole("--width", o.channel.width, 1, kMost, "columns of the channel"),
      apps::whole("--height", o.channel.height, 2, kMost, "cells in a column"),
      apps::whole("--supersteps", o.supersteps, 1, UINT64_MAX, "supersteps, each ended by MPI_Barrier"),
      apps::whole("--substeps", o.substeps, 1, UINT64_MAX, "time steps in a superstep"),
      apps::text("--until", "FILE", o.until, "end earlier, after the superstep in which rank 0 finds FILE"),
      apps::real("--omega", o.channel.omega, 0, 2, "relaxation rate, between 0 and 2"),
      apps::real("--force", o.channel.acceleration, -1, 1, "acceleration along the channel"),
      apps::factors("--work-factor", o.work_factor, "rank R repeats its collisions F times; the field stays the same"),
      apps::whole("--ballast", o.ballast_mib, 0, 1 << 20,
                  "MiB of memory that each rank allocates, and verifies at the end"),
      apps::flag("--times", o.times, "rank 0 prints how long each superstep's slowest rank computed"),
      apps::flag("--check", o.verify, "alias of --verify")};
  for (auto& option : apps::common(o, "final field: 9 raw doubles per cell, column by column"))
    list.push_back(std::move(option));
  return list;
}

}  // namespace lbm
