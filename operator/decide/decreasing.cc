#include "operator/decide/decreasing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

namespace bsp::decide {
namespace {

struct Keyed {
  std::uint64_t key;
  std::uint32_t position;
};

// A whole number that is the larger, the smaller the value is. −0 is 0, as for the values.
std::uint64_t decreasing_key(double value) {
  constexpr std::uint64_t kAllButSign = ~(std::uint64_t{1} << 63);
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return (bits & ~kAllButSign) != 0 ? bits : bits ^ kAllButSign;
}

// Digit by digit from the lowest, each time keeping the order of equal ones (Hollerith's way with cards).
void radix_sort(std::vector<Keyed>& keys) {
  constexpr std::size_t kBits = 11, kDigits = 6, kValues = 1 << kBits;
  const auto digit = [](std::uint64_t key, std::size_t d) { return key >> (d * kBits) & (kValues - 1); };
  std::vector<std::array<std::uint32_t, kValues>> counts(kDigits);
  for (const Keyed& k : keys)
    for (std::size_t d = 0; d < kDigits; ++d) ++counts[d][digit(k.key, d)];
  std::vector<Keyed> sorted(keys.size());
  for (std::size_t d = 0; d < kDigits; ++d) {
    std::array<std::uint32_t, kValues>& next = counts[d];
    if (next[digit(keys[0].key, d)] == keys.size()) continue;  // all have the same
    std::uint32_t before = 0;
    for (std::uint32_t& n : next) before += std::exchange(n, before);
    for (const Keyed& k : keys) sorted[next[digit(k.key, d)]++] = k;
    std::swap(keys, sorted);
  }
}

}  // namespace

std::vector<std::uint32_t> by_decreasing(std::span<const double> values) {
  std::vector<Keyed> keys(values.size());
  for (std::uint32_t q = 0; q < keys.size(); ++q) keys[q] = {decreasing_key(values[q]), q};
  if (keys.size() < 2000) {
    std::ranges::sort(keys, {}, [](const Keyed& k) { return std::tuple(k.key, k.position); });
  } else {
    radix_sort(keys);
  }
  std::vector<std::uint32_t> order(keys.size());
  for (std::size_t q = 0; q < order.size(); ++q) order[q] = keys[q].position;
  return order;
}

}  // namespace bsp::decide
