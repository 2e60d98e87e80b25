// Runs a tool to its end and keeps what it said.
#pragma once

#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::local {

struct CommandResult {
  int exit_code = 0;  // 128 + signal if a signal ended it
  std::string out;
  std::string err;
  [[nodiscard]] bool ok() const { return exit_code == 0; }
};

// argv[0] is looked up in PATH. The child has this thread's network namespace and environment, and
// `input` on its stdin. kNotFound if the tool is not installed.
Result<CommandResult> run_command(const std::vector<std::string>& argv, const std::string& input = "");

}  // namespace bsp::local
