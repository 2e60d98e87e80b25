// Can ranks be checkpointed on this kernel? Asked before anything is started, so that the answer is a sentence and not
// a migration that fails.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp::local {

// kRefused with the remedy. `proc`: where to look instead of /proc (tests).
Result<void> check_kernel(const std::string& proc = "/proc");

}  // namespace bsp::local
