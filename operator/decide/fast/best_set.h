// In which Set a rank's PM is the highest, without computing it for every Set.
//
//   PM(i,j) = comp·ISet(own,j) + Comm(i,j) − (M·T(own,j) + Mig(i,j))          s        (pm.h)
//
// The threshold algorithm (Fagin, Lotem, Naor, "Optimal aggregation algorithms for middleware", PODS 2001). Comm of the
// Sets at the rank's peaks is known, that of all others is at most `rest` (peaks.h); in a short row, that of all is
// known. The Sets are visited by decreasing ISet (equal: increasing T), and from a step on no PM exceeds
//
//   bound = comp·ISet(own,j) + rest − (M·least T + least Mig)                 the least of those still to come
//
// so that the visit ends where that is below the highest so far; mostly, that is after one or two Sets. Rounding keeps
// the order of numbers, so the bound holds for PM as computed, to the last bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operator/decide/model/grid.h"
#include "operator/decide/model/means.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

class BestSet final : public HighestPM {
 public:
  // `open`: by Set, whether it is a target; a rank's own always is one. All have to outlive this.
  BestSet(const Case& c, const Grid<double>& ISet, std::vector<std::uint8_t> open);

  [[nodiscard]] Found find(RankId i, std::span<const SetId> lacking) const override;

 private:
  struct Step {
    double ISet, least_T, least_Mig;  // of the Set; of it and those after it
    std::uint32_t j, least_j;
  };
  // Has what find(i) probably reads, in long rows, brought near meanwhile.
  void announce(RankId i) const;
  [[nodiscard]] std::vector<Step> steps_from(std::uint32_t own) const;
  [[nodiscard]] double Comm(RankId i, std::uint32_t j) const { return c_.metrics.Comm[i.value, j]; }

  const Case& c_;
  const Grid<double>& ISet_;
  std::vector<std::uint8_t> open_;
  std::vector<std::vector<Step>> steps_;  // by the rank's own Set
};

}  // namespace bsp::decide
