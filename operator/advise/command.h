// `bsp-operator advise`: what another heuristic or other parameters would have done in a recorded run.
//
// Exit code: kFailed also if a line can't be read, or if a plan under the recorded parameters differs from the recorded
// one.
#pragma once

#include <span>
#include <string>

#include "base/core/error.h"

namespace bsp::advise {

Result<int> run(std::span<const std::string> words);

}  // namespace bsp::advise
