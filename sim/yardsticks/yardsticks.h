// What others would have done: strategies to hold ours against, in the simulator only.
//
//   GreedyLB   Charm++'s: forget where everybody is; the heaviest object first, each to the processor that then has the
//              least to do (greedy_lb.cc)
//   RefineLB   Charm++'s: only processors above a limit give objects away, to ones that stay within it; the limit is
//              the least that can be kept so (refine_lb.cc)
//   Nothing    decides nothing at the same calls
//
// Written from their descriptions (Charm++ manual, "Load balancing strategies"; Zheng, PhD thesis, UIUC 2005, §2.3).
// Both measure an object's load and a processor's speed, as theirs do; neither knows of communication, of what a
// migration costs, or of Sets. Load of rank i: I(i), instructions of the window. time(p) = Σ_{i on p} I(i) / ((1 −
// load(p))·cpu(p)), s. Migrations cost the same as for the others: the largest Mem(i,j).
#pragma once

#include <string_view>

#include "sim/scenario.h"

namespace bsp::sim {

// Where each rank should be.
std::vector<ProcessorId> greedy_lb(const decide::Snapshot& snapshot, std::span<const double> I);
std::vector<ProcessorId> refine_lb(const decide::Snapshot& snapshot, std::span<const double> I);

// For Scenario::planner: "GreedyLB", "RefineLB", "Nothing"; nothing for other names.
Planner yardstick_named(std::string_view name);

}  // namespace bsp::sim
