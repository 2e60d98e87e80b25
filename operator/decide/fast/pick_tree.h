// Which of a Set's processors is done first with a rank's instructions added, while their loads change.
//
//   time(p) + I·unit(p)            s; time: of what is on p, unit: s/instruction
//
// A tree in which a node bounds all below from underneath, in two ways; the search follows the best bound first and
// cuts the rest.
//
//   least time + I·least unit      exact where capacities are alike: a search and a change take O(log n) then, and
//                                  only times need to be kept
//   chord                          what the best below takes, as a function of I, is the least of straight lines and so
//                                  concave: between two I it is nowhere below the line through its values there. Exact
//                                  where the same one is best at both, however different the others are
//
// Nodes have eight children, whose values lie side by side in one cache line each.
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

  // The chord's two I. All I that are asked for lie between.
  struct Range {
    double low, high;
  };
  // No pick is done before `tight`, nor before `loose`, which is not above it.
  struct Bounds {
    double loose, tight;  // s
  };

  // Nothing can be picked yet. `same_unit`, if above 0: that of all leaves, whatever plant() and set() get.
  explicit PickTree(std::size_t leaves = 0, Range range = {0, 0}, double same_unit = 0);
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
  // O(1).
  [[nodiscard]] Bounds bounds(double I) const { return bounds(asked(I)); }

 private:
  static constexpr std::size_t kChildren = 8;
  static constexpr double kHuge = std::numeric_limits<double>::max();  // of a unit; unlike ∞, times 0 it is 0

  struct Node {  // what bounds all below it
    double time = kInfinite, unit = kHuge, at_low = kHuge, at_high = kHuge;
    bool operator==(const Node&) const = default;
  };
  struct Asked {
    double I, low, high;  // the latter two: weights of the chord's ends
  };

  [[nodiscard]] bool alike() const { return same_unit_ > 0; }
  [[nodiscard]] Asked asked(double I) const;
  [[nodiscard]] Bounds bounds(const Asked& a) const;
  // Above eight siblings, those from `at` on.
  [[nodiscard]] Node node_above(std::size_t level, std::size_t at) const;
  [[nodiscard]] Node node_at(std::size_t n) const;
  void put(std::size_t n, const Node& node);
  // Where at_low_ and at_high_ have node n, which is no leaf.
  [[nodiscard]] std::size_t inner(std::size_t n) const { return n - first_[1]; }
  void set_time(std::size_t leaf, double time);
  [[nodiscard]] std::size_t first_with(double I, double time) const;
  void search(std::size_t level, std::size_t siblings, const Asked& asked, Pick& best) const;

  Range range_;
  double same_unit_;
  std::vector<std::size_t> first_;        // by level, the leaves' first: where it begins
  std::vector<double> time_, unit_;       // of all levels; each is filled up to a multiple of eight
  std::vector<double> at_low_, at_high_;  // of all but the leaves: least time + I·unit below, for the range's two I
                                          // (alike leaves: time_ alone is kept)
  Node root_;
};

}  // namespace bsp::decide
