// Percentage, heuristic 1 of MigBSP (Righi et al. 2010).
//
//   candidates = { i : PM(i) ≥ x · MAX(PM) }, if MAX(PM) is positive         x: 0.80 in the
//   source's runs
//
// The source writes ">"; "≥" makes sure that the maximum itself always counts. Each candidate then
// has to pass the viability test of destination.h, in list order.
#include <algorithm>

#include "operator/decide/papers/destination.h"

namespace bsp::decide {

template <>
void plan<Heuristic::kPercentage>(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  const double max_pm = list.empty() ? 0 : std::max(0.0, list[0].pm);
  const double threshold = c.params.x * max_pm;
  const auto candidacy = [&](std::size_t q) -> Candidacy {
    const double pm = list[q].pm;
    return {.wanted = pm > 0 && pm >= threshold, .value = pm, .limit = threshold};
  };
  move_viable(c, list, candidacy, plan);
}

template <>
std::string why<Heuristic::kPercentage>(const Stay& stay, const std::string& set, const Plan&) {
  return stay.reason == Reason::kNotCandidate ? low_PM(stay) : longer_there(stay, set);
}

}  // namespace bsp::decide
