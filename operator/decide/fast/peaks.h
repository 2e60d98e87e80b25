// The four largest values of a rank's row in a grid of ranks × Sets, and the Sets that have them.
//
// Most ranks hear from few Sets, and a maximum over Sets is mostly at one of the largest values. So a call asks these
// first, and reads a row only where they leave it open: that is what makes it quicker than reading its input once. They
// are picked out as the last superstep before the call is added, while its rows are at hand anyway.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "operator/decide/model/sparse_grid.h"

namespace bsp::decide {

struct Peaks {
  static constexpr std::size_t kPeaks = 4;
  static constexpr std::size_t kShortRow = 16;  // rows that are no longer are read as they are
  std::array<double, kPeaks> value{};           // as in the row, in no order; 0 where there are fewer that are above 0
  std::array<std::uint32_t, kPeaks> set{};      // of each value
  // Bounds, at most 2⁻³⁶ above what they bound: of the values of all other Sets, and of all.
  double rest = 0, most = 0;
};

// The values are not negative and finite, and at most Pattern::kMostColumns.
Peaks peaks_of(std::span<const double> row);
// Of a row of a sparse grid; `sets`: those of the values.
Peaks peaks_of(std::span<const double> row, std::span<const Pattern::Column> sets);

}  // namespace bsp::decide
