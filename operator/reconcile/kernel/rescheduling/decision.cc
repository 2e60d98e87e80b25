#include "operator/reconcile/kernel/rescheduling/decision.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <span>
#include <string>

#include "operator/decide/explain.h"

namespace bsp::reconcile {
namespace {

// As many levels as are shown, the chosen one in their middle where there are enough on both sides.
std::span<const decide::Level> around(const std::vector<decide::Level>& levels, std::size_t chosen) {
  const std::size_t shown = std::min(levels.size(), crds::kShownEntries);
  const std::size_t before = chosen > shown / 2 ? chosen - shown / 2 : 0;
  return std::span(levels).subspan(std::min(before, levels.size() - shown), shown);
}

}  // namespace

crds::Decision to_decision(const decide::Plan& plan, const decide::Snapshot& snapshot, Time now, double imbalance,
                           crds::ReschedulingMode mode) {
  crds::Decision d;
  const auto& sets = snapshot.platform.sets;
  d.superstep = plan.superstep;
  d.time = now;
  d.alpha = static_cast<std::uint32_t>(plan.now.alpha);
  d.alpha_next = static_cast<std::uint32_t>(plan.next.alpha);
  d.d = plan.now.d;
  d.d_next = plan.next.d;
  d.imbalance = imbalance;
  for (const auto& e : plan.pm_list | std::views::take(crds::kShownEntries))
    d.potentials.push_back({e.rank, sets[e.target.value].name, e.comp, e.comm, e.mem, e.pm});
  for (const auto& level : around(plan.levels, plan.chosen_level)) d.levels.push_back({level.level, level.pf});
  if (!plan.levels.empty()) d.chosen_level = plan.chosen_level;
  d.objective_before = plan.objective.before;
  d.objective_after = plan.objective.after;
  d.planned_moves = static_cast<std::uint32_t>(plan.moves.size());
  for (const auto& move : plan.moves | std::views::take(crds::kShownEntries))
    d.moves.push_back({move.rank, sets[move.from_set.value].name, sets[move.to_set.value].name,
                       snapshot.platform.processor(move.to).name, move.gain_window});
  std::map<std::string, std::uint32_t> by_reason;
  for (const auto& stay : plan.stays) ++by_reason[std::string(decide::to_string(stay.reason))];
  for (const auto& [reason, ranks] : by_reason) d.stays_by_reason.push_back({reason, ranks});
  for (const auto& stay : plan.stays | std::views::take(crds::kShownEntries))
    d.stays.push_back({stay.rank, std::string(decide::to_string(stay.reason)), decide::describe(stay, plan, snapshot)});
  const bool too_little = std::ranges::any_of(
      plan.stays, [](const auto& stay) { return stay.reason == decide::Reason::kGainBelowMinimum; });
  d.outcome = plan.moves.empty()                         ? (too_little ? "BelowMinGain" : "NothingToGain")
              : mode != crds::ReschedulingMode::kMigrate ? "Advised"
              : plan.rules.takes_back                    ? crds::kTakingBack
              : plan.rules.tries                         ? crds::kTrying
                                                         : "Migrating";
  d.message = decide::headline(plan, snapshot);
  if (plan.spending.limit > 0 || snapshot.time_left != 0)
    for (const std::string& line : decide::explain_spending(plan, snapshot)) d.message += "; " + line;
  return d;
}

}  // namespace bsp::reconcile
