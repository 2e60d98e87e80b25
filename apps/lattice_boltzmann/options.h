// The command line of lattice_boltzmann.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <span>
#include <string>

#include "strip.h"

namespace lbm {

struct Options {
  Channel channel;
  std::uint64_t supersteps = 100;
  std::uint64_t substeps = 1;         // time steps in one superstep
  std::map<int, double> work_factor;  // rank -> how many times over it does its collisions; else 1
  std::uint64_t progress = 0;         // a line every so many supersteps; 0: ten lines in all
  std::size_t ballast_mib = 0;        // incompressible memory each rank carries and verifies at the end
  std::string output;                 // final populations as raw doubles, column by column
  bool check = false;                 // rank 0 runs the sequential program too and compares
  bool sequential = false;            // no MPI at all
  bool help = false;

  [[nodiscard]] double work_of(int rank) const;
};

extern const char* const kUsage;

// The error is one sentence naming the option.
std::expected<Options, std::string> parse(std::span<char* const> arguments);

}  // namespace lbm
