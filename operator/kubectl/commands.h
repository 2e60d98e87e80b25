// The commands of kubectl-bsp. Each takes the words after its name, prints, and returns an exit code
// (operator/cli/exit_code.h).
#pragma once

#include <span>
#include <string>

namespace bsp::kubectl {

int explain(std::span<const std::string> words);
int top(std::span<const std::string> words);
int timeline(std::span<const std::string> words);
int migrate(std::span<const std::string> words);
int checkpoint(std::span<const std::string> words);
int checkpoints(std::span<const std::string> words);
int drain_plan(std::span<const std::string> words);

}  // namespace bsp::kubectl
