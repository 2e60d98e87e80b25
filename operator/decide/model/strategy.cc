#include "operator/decide/model/strategy.h"

#include <format>
#include <iterator>
#include <string>

namespace bsp::decide {
namespace {

#define BSP_STRATEGY(name, summary) \
  {Heuristic::k##name, #name, summary, plan<Heuristic::k##name>, why<Heuristic::k##name>},
constexpr Strategy kStrategies[] = {BSP_HEURISTICS(BSP_STRATEGY)};
#undef BSP_STRATEGY

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

const Strategy& strategy_for(Heuristic heuristic) { return kStrategies[static_cast<std::size_t>(heuristic)]; }

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
