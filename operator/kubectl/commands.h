// The commands of kubectl-bsp. Each takes the words after its name, prints, and returns an exit code
// (operator/cli/exit_code.h).
#pragma once

#include <span>
#include <string>

#include "base/core/error.h"

namespace bsp::kubectl {

Result<int> explain(std::span<const std::string> words);
Result<int> top(std::span<const std::string> words);
Result<int> timeline(std::span<const std::string> words);
Result<int> migrate(std::span<const std::string> words);
Result<int> checkpoint(std::span<const std::string> words);
Result<int> checkpoints(std::span<const std::string> words);
Result<int> drain_plan(std::span<const std::string> words);

}  // namespace bsp::kubectl
