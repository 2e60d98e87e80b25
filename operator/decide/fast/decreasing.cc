#include "operator/decide/fast/decreasing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace bsp::decide {
namespace {

// A whole number that is the larger, the smaller the value is. −0 is 0, as for the values.
std::uint64_t decreasing_key(double value) {
  constexpr std::uint64_t kAllButSign = ~(std::uint64_t{1} << 63);
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return (bits & ~kAllButSign) != 0 ? bits : bits ^ kAllButSign;
}

// The upper half of a key, and below it the position.
std::uint64_t with_position(std::uint64_t key, std::uint32_t position) { return key >> 32 << 32 | position; }
std::uint32_t position_in(std::uint64_t keyed) { return static_cast<std::uint32_t>(keyed); }

// By the upper half, digit by digit from the lowest, each time keeping the order of equal ones (Hollerith's way with
// cards).
void radix_sort(std::vector<std::uint64_t>& keyed) {
  constexpr std::size_t kBits = 11, kDigits = 3, kValues = 1 << kBits;
  const auto digit = [](std::uint64_t key, std::size_t d) { return key >> (32 + d * kBits) & (kValues - 1); };
  std::vector<std::array<std::uint32_t, kValues>> counts(kDigits);
  for (const std::uint64_t k : keyed)
    for (std::size_t d = 0; d < kDigits; ++d) ++counts[d][digit(k, d)];
  std::vector<std::uint64_t> sorted(keyed.size());
  for (std::size_t d = 0; d < kDigits; ++d) {
    std::array<std::uint32_t, kValues>& next = counts[d];
    if (next[digit(keyed[0], d)] == keyed.size()) continue;  // all have the same
    std::uint32_t before = 0;
    for (std::uint32_t& n : next) before += std::exchange(n, before);
    for (const std::uint64_t k : keyed) sorted[next[digit(k, d)]++] = k;
    std::swap(keyed, sorted);
  }
}

}  // namespace

std::vector<std::uint32_t> by_decreasing(std::span<const double> values) {
  std::vector<std::uint64_t> keyed(values.size());
  for (std::uint32_t q = 0; q < keyed.size(); ++q) keyed[q] = with_position(decreasing_key(values[q]), q);
  if (keyed.size() < 2000) {
    std::ranges::sort(keyed);
  } else {
    radix_sort(keyed);
  }
  std::vector<std::uint32_t> order(keyed.size());
  std::ranges::transform(keyed, order.begin(), position_in);
  // Where the upper halves are equal, values differ by a millionth at most: few runs, and short ones, are left to sort.
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  };
  for (std::size_t begin = 0, end = 0; begin < keyed.size(); begin = end) {
    while (end < keyed.size() && keyed[end] >> 32 == keyed[begin] >> 32) ++end;
    const std::span run(order.begin() + static_cast<std::ptrdiff_t>(begin), end - begin);
    if (!std::ranges::is_sorted(run, earlier)) std::ranges::sort(run, earlier);
  }
  return order;
}

}  // namespace bsp::decide
