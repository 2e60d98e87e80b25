// The command line of smith_waterman.
#pragma once

#include <string>
#include <vector>

#include "apps/common/arguments.h"
#include "apps/smith_waterman/strip.h"

namespace sw {

struct Options : apps::Common {
  std::uint64_t rows = 1000, columns = 1000;  // lengths of the generated sequences a and b
  std::uint64_t blocks = 0;                   // of rows; 0: as many as ranks
  std::uint64_t seed = 1;
  std::string file_a, file_b;  // FASTA
  std::string gap = "affine";
  Scoring scoring;
};

std::vector<apps::Option> table(Options& options);
std::string check(Options& options);

}  // namespace sw
