// Two doubles at a time, for the loops over ranks × Sets in which most of a decision's time goes.
//
// The compiler's own vectors (GCC and Clang, any CPU), because neither finds them by itself in a search for a
// maximum: it would have to change what happens to a NaN. Results are those of the plain loops, bit for bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace bsp::decide {

using Lanes = double __attribute__((vector_size(16)));
using WholeLanes = std::int64_t __attribute__((vector_size(16)));  // of whole numbers: bits, comparisons, counts
inline constexpr std::size_t kLanes = 2;

inline Lanes load(const double* from) {
  Lanes v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

inline void store(Lanes v, double* to) { std::memcpy(to, &v, sizeof(v)); }

// Two elements of a row, or the odd last one by itself: what is computed of one is written once.
struct TwoAt {
  std::size_t k;
  [[nodiscard]] Lanes of(std::span<const double> row) const { return load(row.data() + k); }
  void put(Lanes v, std::span<double> row) const { store(v, row.data() + k); }
};
struct OneAt {
  std::size_t k;
  [[nodiscard]] double of(std::span<const double> row) const { return row[k]; }
  void put(double v, std::span<double> row) const { row[k] = v; }
};
template <class Compute>
void for_each_element(std::size_t n, Compute compute) {
  std::size_t k = 0;
  for (; k + kLanes <= n; k += kLanes) compute(TwoAt{k});
  for (; k < n; ++k) compute(OneAt{k});
}

// The largest of lanes(0), lanes(2) … and single(n−1) if n is odd; not below `least`. Four running maxima, because
// one alone makes each step wait for the step before.
template <class Vectors, class Single>
double largest(std::size_t n, double least, Vectors lanes, Single single) {
  const auto larger = [](Lanes a, Lanes b) { return a > b ? a : b; };
  Lanes m0 = {least, least}, m1 = m0, m2 = m0, m3 = m0;
  std::size_t k = 0;
  for (; k + 4 * kLanes <= n; k += 4 * kLanes) {
    m0 = larger(lanes(k), m0);
    m1 = larger(lanes(k + kLanes), m1);
    m2 = larger(lanes(k + 2 * kLanes), m2);
    m3 = larger(lanes(k + 3 * kLanes), m3);
  }
  for (; k + kLanes <= n; k += kLanes) m0 = larger(lanes(k), m0);
  const Lanes most = larger(larger(m0, m1), larger(m2, m3));
  double result = std::max(most[0], most[1]);
  for (; k < n; ++k) result = std::max(result, single(k));
  return result;
}

// The least of all values; infinite if there is none.
inline double least_of(const std::vector<double>& v) {
  const auto negative = [&](std::size_t k) { return -load(v.data() + k); };
  return -largest(v.size(), -std::numeric_limits<double>::infinity(), negative, [&](std::size_t k) { return -v[k]; });
}

}  // namespace bsp::decide
