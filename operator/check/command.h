// The command `bsp-operator check`.
#pragma once

#include <span>
#include <string>

#include "base/core/error.h"

namespace bsp::checking {

Result<int> run(std::span<const std::string> words);

}  // namespace bsp::checking
