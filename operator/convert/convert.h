// Jobs that run mpirun, as BSPJobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::convert {

struct Converted {
  std::string yaml;                  // every job of the file as a BSPJob; other objects as they are
  std::vector<std::string> rebuild;  // what of the programs has to be built anew, each with its file and line
  std::vector<std::string> notes;    // what isn't carried over, likewise
};

// kInvalid names the line, the field and the remedy. `file_name` only for the messages.
Result<Converted> convert(std::string_view yaml, std::string_view file_name);

}  // namespace bsp::convert
