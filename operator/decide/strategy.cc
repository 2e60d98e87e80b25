#include "operator/decide/strategy.h"

#include <format>
#include <string>

namespace bsp::decide {
namespace {

constexpr Strategy kStrategies[] = {
    {Heuristic::kTop, "Top", "the rank with the highest PM", plan_top},
    {Heuristic::kPercentage, "Percentage", "every rank with PM >= x * MAX(PM)", plan_percentage},
    {Heuristic::kAutoMig, "AutoMig", "as many ranks of the PM list as make the superstep shortest",
     plan_automig},
    {Heuristic::kMigCube, "MigCube", "ranks in a cube around the highest PM's terms", nullptr},
    {Heuristic::kMigHull, "MigHull", "ranks near the segment between the two highest PMs' terms",
     nullptr},
};

std::string available_names() {
  std::string names;
  for (const Strategy& s : kStrategies)
    if (s.plan != nullptr) names += (names.empty() ? "" : ", ") + std::string(s.name);
  return names;
}

Result<const Strategy*> if_available(const Strategy& s) {
  if (s.plan != nullptr) return &s;
  return fail(ErrorCode::kInvalid, std::format("heuristic {} is not available yet: use one of {}",
                                               s.name, available_names()));
}

bool measured(const Grid<Origin>& origin, std::size_t row, std::size_t col) {
  if (origin.empty()) return false;
  return origin[origin.rows() == 1 ? 0 : row, col] == Origin::kMeasured;
}

}  // namespace

std::span<const Strategy> strategies() { return kStrategies; }

Result<const Strategy*> strategy_named(std::string_view name) {
  for (const Strategy& s : kStrategies)
    if (s.name == name) return if_available(s);
  return fail(ErrorCode::kInvalid,
              std::format("unknown heuristic '{}': use one of {}", name, available_names()));
}

Result<const Strategy*> strategy_for(Heuristic heuristic) {
  for (const Strategy& s : kStrategies)
    if (s.heuristic == heuristic) return if_available(s);
  check(false, "every heuristic is in the table");
  return nullptr;
}

Move move_of(const Case& c, const PmEntry& entry, ProcessorId to) {
  const Platform& platform = c.snapshot.platform;
  const ProcessorId from = c.snapshot.ranks[entry.rank.value].processor;
  const SetId own = c.snapshot.set(entry.rank);
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
