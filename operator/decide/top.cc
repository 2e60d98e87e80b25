// Top, heuristic 2 of MigBSP (Righi et al. 2010).
//
//   candidates = { the first of the PM list }, if its PM is positive
//
// It then has to pass the viability test of destination.h.
#include <algorithm>

#include "operator/decide/destination.h"

namespace bsp::decide {

void plan_top(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  const double max_pm = list.empty() ? 0 : std::max(0.0, list[0].pm);
  std::vector<Candidacy> candidates;
  candidates.reserve(list.size());
  for (const PmEntry& e : list)
    candidates.push_back({.wanted = candidates.empty() && e.pm > 0, .value = e.pm, .limit = max_pm});
  move_viable(c, list, candidates, plan);
}

}  // namespace bsp::decide
