// What a heuristic is; crds/choices.h has the table of them.
//
// A heuristic gets the PM list and fills in the plan: moves, a Stay for each entry of the list that
// does not move, the objective and the forecast (AutoMig: the levels too). The rest of the plan is
// made by make_plan.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "operator/decide/model/columns.h"
#include "operator/decide/model/metrics.h"
#include "operator/decide/model/model.h"
#include "operator/decide/model/plan.h"

namespace bsp::decide {

struct Means;  // means.h
const Means& fast_means();

struct Case {
  const Snapshot& snapshot;
  const Columns& columns;  // of the snapshot
  const Metrics& metrics;
  const Params& params;
  std::uint64_t alpha = 0;       // α of the window that ends
  std::uint64_t alpha_next = 0;  // α' at its end: supersteps up to the next call
  double elapsed = 0, owed = 0;  // Cadence's
  const Means* means = &fast_means();
  SuperstepSeconds seconds{};  // as measured in the window
  Judged wave{};               // Cadence's

  // The same case with others of these, which have to outlive it.
  [[nodiscard]] Case with(const Columns& others) const {
    return {snapshot, others, metrics, params, alpha, alpha_next, elapsed, owed, means, seconds, wave};
  }
  [[nodiscard]] Case with(const Metrics& others) const {
    return {snapshot, columns, others, params, alpha, alpha_next, elapsed, owed, means, seconds, wave};
  }
};

struct Strategy {
  Heuristic heuristic;
  std::string_view name;
  std::string_view summary;
  void (*plan)(const Case& c, std::span<const PmEntry> list, Plan& plan);
  std::string (*why)(const Stay& stay, const std::string& set, const Plan& plan);
};

std::span<const Strategy> strategies();
// kInvalid, with the names that there are, if it is unknown.
Result<const Strategy*> strategy_named(std::string_view name);
const Strategy& strategy_for(Heuristic heuristic);

// Why an entry stays that the heuristic did not choose (kNotCandidate), or whose move costs more than it gains
// (kGainBelowCost); `set` is the name of its target.
template <Heuristic heuristic>
std::string why(const Stay& stay, const std::string& set, const Plan& plan);

// What a heuristic does.
template <Heuristic heuristic>
void plan(const Case& c, std::span<const PmEntry> list, Plan& plan);

// Both in the heuristic's own file.
#define BSP_DECLARE(name, summary)                                                    \
  template <>                                                                         \
  void plan<Heuristic::k##name>(const Case& c, std::span<const PmEntry> list, Plan&); \
  template <>                                                                         \
  std::string why<Heuristic::k##name>(const Stay& stay, const std::string& set, const Plan&);
BSP_HEURISTICS(BSP_DECLARE)
#undef BSP_DECLARE

// The move of an entry to processor `to`, with what every heuristic says of it; gains are the
// caller's.
Move move_of(const Case& c, const PmEntry& entry, ProcessorId to);

}  // namespace bsp::decide
