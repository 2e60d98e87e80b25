// Published load balancers to compare ours with, in the simulator only.
//
//   GreedyLB   Charm++'s: ignores the current placement; takes the heaviest object first, and places each on the
//              processor that then has the least to do (greedy_lb.cc)
//   RefineLB   Charm++'s: only processors above a limit give objects away, to processors that stay within it; the limit
//              is the least that can be kept (refine_lb.cc)
//   Nothing    never moves anything at the same calls
//
// Written from their descriptions (Charm++ manual, "Load balancing strategies"; Zheng, PhD thesis, UIUC 2005, §2.3).
// Both use an object's measured load and a processor's speed, like the originals; neither considers communication,
// migration costs or Sets. Load of rank i: I(i), instructions of the window. time(p) = Σ_{i on p} I(i) / ((1 −
// load(p))·cpu(p)), s. Migrations cost the same as with our heuristics: the largest Mem(i,j).
#pragma once

#include <string_view>

#include "sim/scenario.h"

namespace bsp::sim {

// The new processor of each rank.
std::vector<ProcessorId> greedy_lb(const decide::Snapshot& snapshot, std::span<const double> I);
std::vector<ProcessorId> refine_lb(const decide::Snapshot& snapshot, std::span<const double> I);

// For Scenario::planner: "GreedyLB", "RefineLB", "Nothing"; empty for other names.
Planner yardstick_named(std::string_view name);

}  // namespace bsp::sim
