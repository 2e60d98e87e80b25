// `bsp-operator simulate` executes bsp-simulate, which is installed beside this program, so that the operator needn't
// contain a simulator.
#pragma once

#include <span>
#include <string>

#include "operator/cli/exit_code.h"

namespace bsp {

// Replaces this process by bsp-simulate. Returns an exit code, after printing the reason, only if that fails.
Result<int> simulate(std::span<const std::string> words);

}  // namespace bsp
