#include "operator/decide/fast/peaks.h"

#include <algorithm>
#include <bit>

#include "base/core/error.h"
#include "operator/decide/fast/lanes.h"

namespace bsp::decide {
namespace {

// A value with the number of its Set in place of its last bits: ordered like the values, but for those that are next
// to equal, and the largest of them need no branch to find, which in a row of any values would be guessed wrongly.
constexpr std::uint64_t kSetBits = Pattern::kMostColumns - 1;

double keyed(double value, std::size_t j) {
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(value) & ~kSetBits) | j);
}

// The four largest of each lane, decreasing; −1 where there is none.
struct Largest {
  Lanes a = {-1, -1}, b = a, c = a, d = a;

  void add(Lanes key) {
    const auto exchange = [&key](Lanes& held) {
      const Lanes larger = key > held ? key : held;
      key = key > held ? held : key;
      held = larger;
    };
    exchange(a), exchange(b), exchange(c), exchange(d);
  }
};

}  // namespace

Peaks peaks_of(std::span<const double> row) {
  check(row.size() <= Pattern::kMostColumns, "there are at most 65536 Sets");
  Largest largest;
  std::size_t j = 0;
  for (WholeLanes sets = {0, 1}; j + kLanes <= row.size(); j += kLanes, sets += static_cast<std::int64_t>(kLanes)) {
    const auto bits = std::bit_cast<WholeLanes>(load(row.data() + j));
    largest.add(std::bit_cast<Lanes>((bits & ~static_cast<std::int64_t>(kSetBits)) | sets));
  }
  if (j < row.size()) {
    const Lanes last = {keyed(row[j], j), -1};
    largest.add(last);
  }

  // Of two decreasing lists, the larger of first and last, second and last but one, … are the four largest of both.
  const double keys[] = {std::max(largest.a[0], largest.d[1]), std::max(largest.b[0], largest.c[1]),
                         std::max(largest.c[0], largest.b[1]), std::max(largest.d[0], largest.a[1])};
  Peaks peaks;
  for (std::size_t q = 0; q < Peaks::kPeaks; ++q) {
    if (keys[q] < 0) continue;
    peaks.set[q] = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(keys[q]) & kSetBits);
    peaks.value[q] = row[peaks.set[q]];
  }
  peaks.rest = std::max(0.0, keyed(std::ranges::min(keys), kSetBits));
  peaks.most = std::max(0.0, keyed(std::ranges::max(keys), kSetBits));
  return peaks;
}

Peaks peaks_of(std::span<const double> row, std::span<const Pattern::Column> sets) {
  Peaks peaks = peaks_of(row);
  if (row.empty()) return peaks;
  for (std::uint32_t& set : peaks.set) set = sets[set];  // two or three values may be anywhere among the four
  return peaks;
}

}  // namespace bsp::decide
