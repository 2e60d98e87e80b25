// The command line of lu.
#pragma once

#include <vector>

#include "apps/common/arguments.h"
#include "apps/lu/matrix.h"

namespace lu {

struct Options : apps::Common {
  Matrix matrix;
  std::uint64_t block = 32;
  std::uint64_t process_rows = 0;  // 0: default_rows()
};

std::vector<apps::Option> table(Options& options);

// The rows of a grid of `ranks` ranks: the smallest divisor not below its square root (25: 5, 50: 10).
std::uint64_t default_rows(std::uint64_t ranks);

}  // namespace lu
