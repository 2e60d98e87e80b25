// Percentage, heuristic 1 of MigBSP (Righi et al. 2010).
//
//   candidates = { i : PM(i) ≥ x · MAX(PM) }, if MAX(PM) is positive         x: 0.80 in the
//   source's runs
//
// The source writes ">"; "≥" makes sure that the maximum itself always counts. Each candidate then
// has to pass the viability test of destination.h, in list order.
#include <algorithm>

#include "operator/decide/destination.h"

namespace bsp::decide {

void plan_percentage(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  const double max_pm = list.empty() ? 0 : std::max(0.0, list[0].pm);
  const double threshold = c.params.x * max_pm;
  std::vector<Candidacy> candidates;
  candidates.reserve(list.size());
  for (const PmEntry& e : list)
    candidates.push_back({.wanted = e.pm > 0 && e.pm >= threshold, .value = e.pm, .limit = threshold});
  move_viable(c, list, candidates, plan);
}

}  // namespace bsp::decide
