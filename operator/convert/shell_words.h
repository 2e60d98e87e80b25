// A shell's command line, as far as it is one simple command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::convert {

struct Word {
  std::string text;       // without quotes
  std::string source;     // as it was written
  bool expanded = false;  // contains something that only a shell expands: $NAME, *, ~
};

// The words of the one command in `line`; leading lines of "set" and a leading "exec" are dropped. kInvalid quotes what makes it more
// than a simple command: a pipe, a redirection, a second command.
Result<std::vector<Word>> shell_words(std::string_view line);

}  // namespace bsp::convert
