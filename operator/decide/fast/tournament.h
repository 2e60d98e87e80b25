// The largest of many values that change one at a time: O(1) to read, O(log n) to change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bsp::decide {

// Of values that are not negative. A node is the largest of eight below it, which lie side by side.
class Tournament {
 public:
  // value(k) for k below n.
  template <class Value>
  Tournament(std::size_t n, Value value) {
    std::size_t all = 0;
    for (std::size_t nodes = std::max<std::size_t>(n, 1); first_.empty() || nodes > 1; all += nodes * kChildren) {
      first_.push_back(all);
      nodes = (nodes + kChildren - 1) / kChildren;
    }
    nodes_.assign(all, 0.0);
    for (std::uint32_t k = 0; k < n; ++k) nodes_[k] = value(k);
    for (std::size_t level = 1; level < first_.size(); ++level)
      for (std::size_t at = first_[level - 1], node = first_[level]; at < first_[level]; at += kChildren)
        nodes_[node++] = largest_of(at);
    largest_ = largest_of(first_.back());
  }

  [[nodiscard]] double largest() const { return largest_; }
  [[nodiscard]] double operator[](std::size_t k) const { return nodes_[k]; }

  // Whose value is the largest; the first of equals.
  [[nodiscard]] std::size_t winner() const {
    std::size_t k = 0;
    for (std::size_t level = first_.size(); level-- > 0;) {
      k *= kChildren;
      while (nodes_[first_[level] + k] != largest_) ++k;
    }
    return k;
  }

  // The largest but for that of k.
  [[nodiscard]] double largest_but(std::size_t k) const {
    double most = 0;
    for (const std::size_t first : first_) {
      const std::size_t siblings = k / kChildren * kChildren;
      for (std::size_t s = siblings; s < siblings + kChildren; ++s)
        if (s != k) most = std::max(most, nodes_[first + s]);
      k /= kChildren;
    }
    return most;
  }

  // Siblings are read only where the largest of them gets smaller.
  void set(std::size_t k, double value) {
    for (std::size_t level = 0; level < first_.size(); ++level) {
      const double before = std::exchange(nodes_[first_[level] + k], value);
      if (before == value) return;
      k /= kChildren;
      const double above = level + 1 < first_.size() ? nodes_[first_[level + 1] + k] : largest_;
      if (value >= above) continue;
      if (before < above) return;
      value = largest_of(first_[level] + k * kChildren);
    }
    largest_ = value;
  }
  // Value k is going to be set.
  void prefetch(std::size_t k) const { __builtin_prefetch(&nodes_[k], 1); }

 private:
  static constexpr std::size_t kChildren = 8;

  [[nodiscard]] double largest_of(std::size_t at) const {
    const double* v = nodes_.data() + at;
    return std::max(std::max(std::max(v[0], v[1]), std::max(v[2], v[3])),
                    std::max(std::max(v[4], v[5]), std::max(v[6], v[7])));
  }

  std::vector<std::size_t> first_;  // by level, the values' first: where it begins
  std::vector<double> nodes_;       // of all levels; each is filled up to a multiple of eight, with 0
  double largest_ = 0;
};

}  // namespace bsp::decide
