// The search of Bottleneck: which ranks to move where, so that the time to the next call is shortest.
//
//   F = α · (max_i Time(i) + max_i Comm(i,·)) + max over the moved of Mem        s
//
// α being the supersteps to the next call; with horizon: superstep it is 1, and F is AutoMig's pf.
//
// F is a sum of three maxima, so only who sits at one of them matters. With a limit on two of them, comm ≤ κ and
// mem ≤ μ, what is left is to relieve the slowest processor over and over; that is one descent:
//   1. who was moved and exceeds μ, who exceeds κ, goes where he does not
//   2. one rank of the slowest processor p goes to another processor q, so that the later of p and q is done as soon
//      as possible; again, until the slowest can't be relieved
// The best F on the way counts, not the last one: several moves may gain only together. Around it:
//   improve      from AutoMig's answer, with limits at and just below the current maxima, while that helps
//   try_limits   from no rank moved, over a grid of κ and μ
//   exchange     another rank gives up its slot for one that is at a maximum; then a descent
//   leave_out    every rank that can stay without raising F stays
// Every step is taken back unless F gets lower, so that no answer is worse than the one the search began with. It
// spends at most kWork elementary steps: small jobs are searched nearly exhaustively (tests/unit/decide measures the
// distance from the optimum), in large ones the time of a call does not grow with it. Two ranks change places
// only by way of a third processor's free slot: where a simulated platform reuses vacated slots and has no other, a swap
// that would help is not found.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "operator/decide/bottleneck/trial.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

class BottleneckSearch {
 public:
  static constexpr std::int64_t kWork = 500'000;       // visiting a Set, a rank or a tree node is one step
  static constexpr std::uint32_t kTriedTogether = 16;  // ranks of the slowest processor, before the best is taken

  BottleneckSearch(const Case& c, Trial& trial, double alpha);

  // `list`: the PM list. Leaves the trial at the best mapping found.
  void run(std::span<const PmEntry> list);

  [[nodiscard]] double F() const { return alpha_ * (trial_.time() + trial_.comm()) + trial_.mem(); }
  [[nodiscard]] bool move_limit_reached() const {
    return c_.params.max_moves > 0 && trial_.moves() >= c_.params.max_moves;
  }

 private:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  static constexpr double kNoise = 1e-9;  // what is nearer than this (relative) is the same

  struct Limits {
    double comm = kNoLimit;  // κ
    double mem = kNoLimit;   // μ
  };
  struct Spot {
    ProcessorId processor;
    double time;  // time(processor) with the rank on it, s
  };

  template <class Steps>
  bool attempt(Steps steps);
  void relocate(RankId i, ProcessorId to);
  void keep_if_best();
  [[nodiscard]] bool may_move(RankId i) const;
  [[nodiscard]] bool may_be_in(RankId i, SetId j) const;
  [[nodiscard]] bool has_slot_for(RankId i, ProcessorId p) const;

  std::optional<Spot> best_spot(RankId i, double below, const Limits& limits);
  bool send_away(RankId i, const Limits& limits);
  bool relieve_slowest(const Limits& limits);
  void descend(const Limits& limits);

  void improve();
  void all_home();
  void try_limits();
  void exchange(RankId i, RankId k);
  void exchanges();
  [[nodiscard]] std::vector<std::uint32_t> at_a_maximum_from(std::size_t first,
                                                             std::span<const std::uint32_t> position) const;
  bool follow_the_list(std::span<const PmEntry> list, std::span<const std::uint32_t> position);
  [[nodiscard]] bool could_stay(RankId i) const;
  void leave_out();

  const Case& c_;
  Trial& trial_;
  double alpha_;
  std::int64_t search_cost_;  // of best_spot
  std::int64_t work_ = kWork;
  double best_;          // the lowest F so far …
  std::size_t best_at_;  // … and the trial's mark there
  // Of best_spot, by Set: in whose order they are visited, and what is known of each.
  std::vector<double> visit_, bounds_;
};

}  // namespace bsp::decide
