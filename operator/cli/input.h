// The file that a command is given by -f.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp::cli {

struct Input {
  std::string text;
  std::string name;  // for messages
};

// `path`: a file, or - for standard input. Errors as read_file()'s.
Result<Input> read_input(const std::string& path);

}  // namespace bsp::cli
