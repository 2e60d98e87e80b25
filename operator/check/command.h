// The command `bsp-operator check`.
#pragma once

#include <span>
#include <string>

namespace bsp::checking {

int run(std::span<const std::string> words);

}  // namespace bsp::checking
