// Checks that this kernel can checkpoint ranks before anything is started, so that the user reads a sentence instead of
// a failed migration.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp::local {

// kRefused with the remedy. Tests pass another directory as `proc`.
Result<void> check_kernel(const std::string& proc = "/proc");

}  // namespace bsp::local
