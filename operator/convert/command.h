// The command `bsp-operator convert`.
#pragma once

#include <span>
#include <string>

namespace bsp::convert {

int run(std::span<const std::string> words);

}  // namespace bsp::convert
