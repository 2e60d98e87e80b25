// Rings of ranks with equal work on pools of nodes, and how the operator decides on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operator/decide/auto/auto.h"
#include "tests/unit/observe/operator_loop.h"

namespace bsp::observe {

struct Pool {
  std::string set;
  std::uint32_t nodes;
  double cpu;
};

// A ring of ranks with 10⁹ instructions a superstep on the first nodes of the first pool.
inline decide::LoopJob ring_on(const std::vector<Pool>& pools, std::uint32_t ranks, std::uint64_t supersteps) {
  decide::LoopJob job;
  decide::Platform& platform = job.start.platform;
  for (const Pool& pool : pools) {
    const auto set = static_cast<std::uint32_t>(platform.sets.size());
    platform.sets.push_back({.name = pool.set});
    for (std::uint32_t n = 0; n < pool.nodes; ++n)
      platform.processors.push_back(
          {.name = pool.set + "-" + std::to_string(n), .set = {set}, .cpu = pool.cpu, .slots = 1});
  }
  const std::size_t sets = pools.size();
  platform.T = decide::Grid<double>(sets, sets, 1e-9);
  platform.Mig = decide::Grid<double>(1, sets, 0.3);
  for (std::uint32_t i = 0; i < ranks; ++i) {
    job.start.ranks.push_back({.processor = {i}, .memory_bytes = 50e6});
    job.work.push_back(1e9);
    job.hears.push_back({{(i + 1) % ranks, 1e5}, {(i + ranks - 1) % ranks, 1e5}});
  }
  job.supersteps = supersteps;
  return job;
}

// A ring that two ranks or more cut in two takes longer than its messages say.
inline decide::LoopJob cut_in_two(std::uint64_t supersteps, double mig = 0.3) {
  decide::LoopJob job = ring_on({{"a", 8, 1e9}, {"b", 9, 1.3e9}}, 9, supersteps);
  job.start.platform.Mig = decide::Grid<double>(1, 2, mig);
  for (std::uint32_t i = 0; i < 9; ++i) job.work[i] = i < 3 ? 1.3e9 : 0.8e9;
  job.unexplained = [](const std::vector<ProcessorId>& on) {
    const auto in_b = std::ranges::count_if(on, [](ProcessorId p) { return p.value >= 8; });
    return in_b > 1 && in_b < 9 ? 0.6 : 0.0;
  };
  return job;
}

inline OperatorLoop automatic() {
  OperatorLoop loop;
  decide::take_heuristic(loop.params, crds::Heuristic::kAuto);
  return loop;
}

}  // namespace bsp::observe
