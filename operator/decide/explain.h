// A plan as text, for logs, the demo and `describe`. Every line says what, by how much and in which
// unit.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "operator/decide/model/plan.h"

namespace bsp::decide {

// "fast/fast-0": the processor with its Set.
std::string place_name(const Snapshot& snapshot, ProcessorId p);

// "rank 2: slow/slow-1 → fast/fast-0, its superstep 0.412 s shorter, …"
std::string describe(const Move& move, const Snapshot& snapshot);
// The reason of one rank that stays, as a sentence without the rank: "GainBelowCost: …".
std::string describe(const Stay& stay, const Plan& plan, const Snapshot& snapshot);
// "call after superstep 12: AutoMig moves 2 of 8 ranks, pf 1.204 s → 0.811 s (−32.6 %)"
std::string headline(const Plan& plan, const Snapshot& snapshot);

// The parts of explain(), for other layouts. `most`: rows of a table before the
// rest is only counted.
std::vector<std::string> explain_pm_list(const Plan& plan, const Snapshot& snapshot, std::size_t most = 16);
std::vector<std::string> explain_levels(const Plan& plan, const Snapshot& snapshot, std::size_t most = 16);
std::vector<std::string> explain_moves(const Plan& plan, const Snapshot& snapshot, std::size_t most = 16);
std::vector<std::string> explain_stays(const Plan& plan, const Snapshot& snapshot, std::size_t most = 16);
std::string explain_cadence(const Plan& plan);
// What it means to a plan by price that `unknown` of `nodes` have none; above 0.
std::string unpriced_text(std::size_t unknown, std::size_t nodes);
// What the ranks' slots cost, what the objective leaves of time, and what isn't known of either.
std::vector<std::string> explain_spending(const Plan& plan, const Snapshot& snapshot);

// All of it: headline, PM list with its three terms, levels' pf, moves, stays, next α and D.
std::vector<std::string> explain(const Plan& plan, const Snapshot& snapshot, std::size_t most = 16);

}  // namespace bsp::decide
