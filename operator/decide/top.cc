// Top, heuristic 2 of MigBSP (Righi et al. 2010).
//
//   candidates = { the first of the PM list }, if its PM is positive
//
// It then has to pass the viability test of destination.h.
#include "operator/decide/destination.h"

namespace bsp::decide {

void plan_top(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  std::vector<bool> candidate(list.size(), false);
  if (!list.empty() && list[0].pm > 0) candidate[0] = true;
  move_viable(c, list, candidate, list.empty() || list[0].pm <= 0 ? 0 : list[0].pm, plan);
}

}  // namespace bsp::decide
