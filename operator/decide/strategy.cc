#include "operator/decide/strategy.h"

#include <format>
#include <iterator>
#include <string>

namespace bsp::decide {
namespace {

constexpr Strategy kStrategies[] = {
    {Heuristic::kTop, "Top", "the rank with the highest PM", plan_top},
    {Heuristic::kPercentage, "Percentage", "every rank with PM >= x * MAX(PM)", plan_percentage},
    {Heuristic::kAutoMig, "AutoMig", "as many ranks of the PM list as make the superstep shortest", plan_automig},
    {Heuristic::kMigCube, "MigCube", "ranks in a cube around the highest PM's terms", plan_migcube},
    {Heuristic::kMigHull, "MigHull", "ranks near the segment between the two highest PMs' terms", plan_mighull},
    {Heuristic::kBottleneck, "Bottleneck", "the moves that make the time to the next call shortest", plan_bottleneck},
};

std::string names_of_all() {
  std::string names;
  for (const Strategy& s : kStrategies) names += (names.empty() ? "" : ", ") + std::string(s.name);
  return names;
}

bool measured(const Grid<Origin>& origin, std::size_t row, std::size_t col) {
  if (origin.empty()) return false;
  return origin[origin.rows() == 1 ? 0 : row, col] == Origin::kMeasured;
}

}  // namespace

std::span<const Strategy> strategies() { return kStrategies; }

Result<const Strategy*> strategy_named(std::string_view name) {
  for (const Strategy& s : kStrategies)
    if (s.name == name) return &s;
  return fail(ErrorCode::kInvalid, std::format("unknown heuristic '{}': use one of {}", name, names_of_all()));
}

const Strategy& strategy_for(Heuristic heuristic) {
  const auto index = static_cast<std::size_t>(heuristic);
  check(index < std::size(kStrategies) && kStrategies[index].heuristic == heuristic,
        "the table has every heuristic, in the order of the enum");
  return kStrategies[index];
}

Move move_of(const Case& c, const PmEntry& entry, ProcessorId to) {
  const Platform& platform = c.snapshot.platform;
  const ProcessorId from = c.columns.on[entry.rank.value];
  const SetId own = c.columns.own[entry.rank.value];
  return {.rank = entry.rank,
          .from = from,
          .to = to,
          .from_set = own,
          .to_set = entry.target,
          .cost = entry.mem,
          .cost_assumed = !measured(platform.T_origin, own.value, entry.target.value) ||
                          !measured(platform.Mig_origin, entry.rank.value, entry.target.value),
          .cpu_assumed = platform.processor(from).cpu_origin == Origin::kAssumed ||
                         platform.processor(to).cpu_origin == Origin::kAssumed};
}

}  // namespace bsp::decide
