// Which of a Set's processors is done first with a rank's instructions added, while their loads change.
//
//   time(p) + I·unit(p)            s; time: of what is on p, unit: s/instruction
//
// A tree in which a node knows the smallest time and the smallest unit below it, so that smallest + I·smallest bounds
// all below from underneath: the search follows the best bound first and cuts the rest. Where capacities are alike the
// bound is exact, and both a search and a change take O(log n). Nodes have eight children, whose figures lie side by
// side in one cache line each.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace bsp::decide {

class PickTree {
 public:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  struct Pick {
    std::size_t leaf;
    double time;  // s
  };

  // Nothing can be picked yet.
  explicit PickTree(std::size_t leaves = 0);
  [[nodiscard]] bool empty() const { return first_.empty(); }

  // To be followed by grow(), which makes the nodes above of all leaves at once.
  void plant(std::size_t leaf, double time, double unit);
  void grow();
  // The same, of one.
  void set(std::size_t leaf, double time, double unit);
  // It can't be picked.
  void close(std::size_t leaf);

  // The leaf that is done first (equal: the smaller), if that is before `below`.
  [[nodiscard]] std::optional<Pick> pick(double I, double below = kInfinite) const;
  // No pick is done earlier. O(1).
  [[nodiscard]] double least_time(double I) const { return least_time_ + I * least_unit_; }

 private:
  static constexpr std::size_t kChildren = 8;
  static constexpr double kHuge = std::numeric_limits<double>::max();  // of a unit; unlike ∞, times 0 it is 0

  // Of eight siblings, beginning at `at`.
  [[nodiscard]] double least_time_of(std::size_t at) const;
  [[nodiscard]] double least_unit_of(std::size_t at) const;
  void search(std::size_t level, std::size_t siblings, double I, Pick& best) const;

  std::vector<std::size_t> first_;                      // by level, the leaves' first: where it begins
  std::vector<double> time_, unit_;                     // of all levels; each is filled up to a multiple of eight
  double least_time_ = kInfinite, least_unit_ = kHuge;  // of all
};

}  // namespace bsp::decide
