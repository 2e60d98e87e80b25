#include <algorithm>
#include <format>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

namespace {
constexpr double kLately = 30;  // seconds
}

void doubt_claims(std::map<Seat, SidecarFacts>& sidecars, SteadyTime now) {
  std::vector<std::uint64_t> claims;
  for (const auto& [seat, facts] : sidecars)
    // A rank that has just been restored counts from 0 until its first edge.
    if (facts.completed > 0 && facts.unreachable_since == SteadyTime{} &&
        to_seconds(now - facts.completed_at) < kLately)
      claims.push_back(facts.completed);
  if (claims.size() < 2) return;
  const auto middle = claims.begin() + static_cast<std::ptrdiff_t>((claims.size() - 1) / 2);
  std::ranges::nth_element(claims, middle);
  for (auto& [seat, facts] : sidecars) {
    if (facts.completed <= *middle || facts.completed - *middle <= kFarAhead) continue;
    facts.rejected =
        std::format("it claims to have completed superstep {}, and the others are at {}", facts.completed, *middle);
    facts.rejected_at = now;
    facts.completed = *middle;
    if (facts.status) facts.status->completed = std::min(facts.status->completed, *middle);
  }
}

}  // namespace bsp::reconcile
