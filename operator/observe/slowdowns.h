// Nodes that slow down where CPUs count no instructions. A lower clock rate or a neighbour on the same core makes the same work take more
// CPU time, so that the rank seems to have more to do, and no other node seems faster. What tells a node from the work is how it
// begins: a rank that was steady takes more time from one superstep to the next, for good, while the others go on as before.
//
//   l(i)     ln work(i), mean of the supersteps so far (aging); not while e is above the limit
//   e(i)     ln work_t(i) − l(i), less its median over the ranks: what all have in common is the program's
//   limit    max(kStep, kSure · standard deviation of e(i))
//   suspect  e(i) > limit in kSettled supersteps in a row, after kHistory others
//
// As long as a rank is suspect its work counts as exp(l(i)), and so its node as slow (calibration.h). It is no longer if it takes as
// long as before again, or moves. Then its next kSettled supersteps show which of the two it was: the work, if it still takes longer. That
// costs a move for nothing, once: a job with kWrong such ranks, and no more slow nodes than that, has no suspects any more. Nor has one
// in which more than a quarter of the ranks change at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "operator/observe/calibration.h"

namespace bsp::observe {

class Slowdowns {
 public:
  static constexpr std::uint32_t kHistory = 16;  // supersteps
  static constexpr std::uint32_t kSettled = 3;   // supersteps
  static constexpr double kStep = 0.15;          // ln
  static constexpr double kSure = 5;             // standard deviations
  static constexpr std::uint32_t kWrong = 2;     // ranks
  static constexpr std::size_t kFewest = 3;      // ranks

  // After each superstep. `work`: CPU time in one unit (work.h), by rank as all others. `calibration` forgets what it held against a node
  // if it was the rank.
  void add(std::span<const double> work, const std::vector<std::string>& node_of_rank, Calibration& calibration);
  // The rank's work has another unit from now on, `ratio` times what it was.
  void rescale(std::size_t rank, double ratio);

  // By which the rank's work has to be multiplied; below 1 of a suspect, else 1.
  [[nodiscard]] double factor(std::size_t rank) const;
  [[nodiscard]] bool suspects(std::size_t rank) const { return factor(rank) < 1; }

 private:
  struct Rank {
    std::string node;
    std::uint32_t history = 0;  // supersteps that `level` is of, at most kHistory
    Estimate level{};           // l(i)
    double square = 0;          // e², mean
    Estimate step{};            // ln work while e is above the limit
    std::uint32_t back = 0;     // supersteps in a row in which it isn't any more
    bool suspect = false;
    std::string left{};  // the node that it was a suspect on, until `after` shows whether that was slow
    Estimate after{};    // ln work since
  };
  void moved(Rank& rank, const std::string& node);
  void compare(Rank& rank, Calibration& calibration);
  void add(Rank& rank, double ln, double common, Calibration& calibration);

  std::vector<Rank> ranks_;
  std::uint32_t slow_nodes_ = 0, wrong_ = 0;
};

}  // namespace bsp::observe
