// The command line of fractal.
#pragma once

#include <string>
#include <vector>

#include "apps/common/arguments.h"
#include "apps/fractal/image.h"

namespace fractal {

struct Options : apps::Common {
  std::uint64_t width = 512, height = 512;  // of a generated picture
  std::uint64_t seed = 1;
  std::string image;        // PGM, instead of a generated one
  std::uint64_t range = 8;  // r
  std::uint64_t flat = 3;   // a standard deviation
  std::string original;     // file for the original picture
  std::string code;         // file for the compressed picture
  std::string compressed;   // compressed picture to decompress
};

std::vector<apps::Option> table(Options& options);
std::string check(Options& options);

}  // namespace fractal
