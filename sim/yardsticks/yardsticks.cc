#include "sim/yardsticks/yardsticks.h"

#include "operator/decide/model/adaptation.h"

namespace bsp::sim {
namespace {

using Placement = std::vector<ProcessorId> (*)(const decide::Snapshot&, std::span<const double>);

std::vector<ProcessorId> stay(const decide::Snapshot& snapshot, std::span<const double>) {
  std::vector<ProcessorId> placed;
  for (const decide::Rank& rank : snapshot.ranks) placed.push_back(rank.processor);
  return placed;
}

decide::Move move_to(const decide::Snapshot& snapshot, RankId i, ProcessorId to) {
  const decide::Rank& rank = snapshot.ranks[i.value];
  const SetId from_set = snapshot.set(i), to_set = snapshot.platform.processor(to).set;
  return {.rank = i,
          .from = rank.processor,
          .to = to,
          .from_set = from_set,
          .to_set = to_set,
          .cost = rank.memory_bytes * snapshot.platform.T[from_set.value, to_set.value] +
                  snapshot.platform.Mig_row(i)[to_set.value]};
}

// A planner whose plans move ranks to the given placement. The plans have no PM, levels or objective.
Planner planner_of(Placement placement) {
  return [placement](const decide::Snapshot& snapshot, const decide::Window& window,
                     const decide::Params& params) -> Result<decide::Plan> {
    decide::Plan plan{.superstep = window.completed(), .now = window.cadence()};
    const std::vector<ProcessorId> placed = placement(snapshot, window.metrics().I_window);
    for (std::uint32_t i = 0; i < placed.size(); ++i)
      if (placed[i] != snapshot.ranks[i].processor) plan.moves.push_back(move_to(snapshot, RankId{i}, placed[i]));
    plan.next = decide::next_cadence(plan.now, plan.superstep, params.migrates && !plan.moves.empty(), params);
    return plan;
  };
}

}  // namespace

Planner yardstick_named(std::string_view name) {
  if (name == "GreedyLB") return planner_of(greedy_lb);
  if (name == "RefineLB") return planner_of(refine_lb);
  if (name == "Nothing") return planner_of(stay);
  return {};
}

}  // namespace bsp::sim
