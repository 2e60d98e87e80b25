// The order of many values by decreasing value.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace bsp::decide {

// The positions of the values, the largest value's first; equal ones by position. No value is NaN. O(n) where few are
// nearly equal.
std::vector<std::uint32_t> by_decreasing(std::span<const double> values);

// things[order[0]], things[order[1]] …, in the place of what was there; each position once.
template <class Thing>
void reorder(std::span<Thing> things, std::vector<std::uint32_t> order) {
  for (std::uint32_t start = 0; start < order.size(); ++start) {
    const Thing first = things[start];
    std::uint32_t to = start;
    for (std::uint32_t from; (from = std::exchange(order[to], to)) != start; to = from) things[to] = things[from];
    things[to] = first;
  }
}

}  // namespace bsp::decide
