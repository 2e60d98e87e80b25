// Top, heuristic 2 of MigBSP (Righi et al. 2010).
//
//   candidates = { the first of the PM list }, if its PM is positive
//
// It then has to pass the viability test of destination.h.
#include <algorithm>

#include "operator/decide/papers/destination.h"

namespace bsp::decide {

template <>
void plan<Heuristic::kTop>(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  const double max_pm = list.empty() ? 0 : std::max(0.0, list[0].pm);
  const auto candidacy = [&](std::size_t q) -> Candidacy {
    return {.wanted = q == 0 && list[q].pm > 0, .value = list[q].pm, .limit = max_pm};
  };
  move_viable(c, list, candidacy, plan);
}

template <>
std::string why<Heuristic::kTop>(const Stay& stay, const std::string& set, const Plan&) {
  return stay.reason == Reason::kNotCandidate ? low_PM(stay) : longer_there(stay, set);
}

}  // namespace bsp::decide
