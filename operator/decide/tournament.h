// The largest of many values that change one at a time: O(1) to read, O(log n) to change.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace bsp::decide {

// Of values that are not negative.
class Tournament {
 public:
  // value(k) for k below n.
  template <class Value>
  Tournament(std::size_t n, Value value) : width_(std::bit_ceil(std::max<std::size_t>(n, 1))), nodes_(2 * width_, 0.0) {
    for (std::size_t k = 0; k < n; ++k) nodes_[width_ + k] = value(k);
    for (std::size_t m = width_; --m > 0;) nodes_[m] = std::max(nodes_[2 * m], nodes_[2 * m + 1]);
  }

  [[nodiscard]] double largest() const { return nodes_[1]; }
  [[nodiscard]] double operator[](std::size_t k) const { return nodes_[width_ + k]; }

  // Whose value is the largest; the first of equals.
  [[nodiscard]] std::size_t winner() const {
    std::size_t n = 1;
    while (n < width_) n = 2 * n + (nodes_[2 * n] < nodes_[n] ? 1 : 0);
    return n - width_;
  }

  // The largest but for that of k.
  [[nodiscard]] double largest_but(std::size_t k) const {
    double most = 0;
    for (std::size_t n = width_ + k; n > 1; n /= 2) most = std::max(most, nodes_[n ^ 1]);
    return most;
  }

  void set(std::size_t k, double value) {
    std::size_t n = width_ + k;
    nodes_[n] = value;
    while ((n /= 2) > 0) {
      const double above = std::max(nodes_[2 * n], nodes_[2 * n + 1]);
      if (above == nodes_[n]) break;  // nothing changes further up
      nodes_[n] = above;
    }
  }

 private:
  std::size_t width_;          // a power of two
  std::vector<double> nodes_;  // root 1, children of n are 2n and 2n+1, value k at width_ + k
};

}  // namespace bsp::decide
