// What tests of Auto share.
#pragma once

#include "operator/decide/auto/auto.h"
#include "tests/bench/closed_loop.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {

inline constexpr std::uint64_t kAutoSeed = 20261123;
inline constexpr Params kAuto{.heuristic = Heuristic::kAuto, .early_calls = true};

inline Params as_a_job_runs() {
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  return params;
}

// One rank on a slow processor, a fast one beside it: it loses 1 s a superstep, and moving costs 5.5 s.
inline LoopJob one_rank(std::uint64_t supersteps) {
  LoopJob job;
  job.start.platform =
      platform_of({{.name = "slow", .cpu = 0.5e9, .slots = 1}, {.name = "fast", .cpu = 1e9, .slots = 1}});
  job.start.platform.Mig = Grid<double>(1, 2, 5.5);
  job.start.ranks = {{.processor = {0}}};
  job.work = {1e9};
  job.hears = {{}};
  job.supersteps = supersteps;
  return job;
}

}  // namespace bsp::decide
