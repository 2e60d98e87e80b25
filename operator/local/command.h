// Runs a tool, waits for it, and returns its output.
#pragma once

#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::local {

struct CommandResult {
  int exit_code = 0;  // 128 + signal if a signal killed it
  std::string out;
  std::string err;
  [[nodiscard]] bool ok() const { return exit_code == 0; }
};

// What a tool shares with this program.
struct Shared {
  // Ctrl-C ends it too, and without input it may ask the user on the terminal. Otherwise Ctrl-C must shut this program down
  // in order, not kill its tools mid-work.
  bool terminal = false;
  bool errors = false;  // its stderr is ours, and CommandResult::err stays empty
};

// Looks up argv[0] in PATH. The child inherits this thread's network namespace and environment, and reads `input` on
// stdin. kNotFound if the tool isn't installed.
Result<CommandResult> run_command(const std::vector<std::string>& argv, const std::string& input = "",
                                  Shared shared = {});

}  // namespace bsp::local
