#include "operator/migrate/contact.h"

namespace bsp::migrate {
namespace {
// A wave under way is reconciled every tenth of a second.
constexpr std::chrono::seconds kLongestGap{1};
}  // namespace

void Contact::note(const Wave* wave, SteadyTime now) {
  if (!wave || number_ != wave->number) since_.clear();
  number_ = wave ? std::optional(wave->number) : std::nullopt;
  if (!wave) return;
  const Duration absent = now - last_;
  last_ = now;
  if (absent > kLongestGap)
    for (auto& [phase, since] : since_) since += absent - kLongestGap;
  // Phases whose work was done already are passed in one write, and a later one may count from them.
  for (const crds::PhaseTime& entered : wave->times) since_.try_emplace(entered.phase, now);
  since_.try_emplace(wave->phase, now);
}

}  // namespace bsp::migrate
