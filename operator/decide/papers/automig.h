// AutoMig's choice among levels, apart so that it can be tested with the source's printed numbers.
#pragma once

#include <cstddef>
#include <span>

#include "operator/decide/model/plan.h"

namespace bsp::decide {

// The level with the smallest pf (equal: the fewer moves) if it is below that of level 0; else 0.
std::size_t best_level(std::span<const Level> levels);

}  // namespace bsp::decide
