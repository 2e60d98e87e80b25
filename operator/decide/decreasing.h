// The order of many values by decreasing value.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bsp::decide {

// The positions of the values, the largest value's first; equal ones by position. No value is NaN. O(n).
std::vector<std::uint32_t> by_decreasing(std::span<const double> values);

}  // namespace bsp::decide
