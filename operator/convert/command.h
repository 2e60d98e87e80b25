// The command `bsp-operator convert`.
#pragma once

#include <span>
#include <string>

#include "base/core/error.h"

namespace bsp::convert {

Result<int> run(std::span<const std::string> words);

}  // namespace bsp::convert
