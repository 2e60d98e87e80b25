// A job beside a Set in which no rank has run, for the tests of what Auto makes of it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "operator/decide/auto/auto.h"
#include "operator/decide/make_plan.h"
#include "tests/bench/closed_loop.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {

inline Params auto_params() {
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  return params;
}

// Four ranks in slow, and a Set without ranks that is assumed to be twice as fast.
inline LoopJob beside_an_untried_set(double mig = 0.5) {
  LoopJob job;
  job.start.platform = platform_of({{.name = "slow", .processors = 4, .cpu = 0.5e9, .slots = 1},
                                    {.name = "new", .processors = 4, .cpu = 1e9, .slots = 1}});
  job.start.platform.Mig = Grid<double>(1, 2, mig);
  job.start.platform.sets[1].untried = true;
  for (std::uint32_t i = 0; i < 4; ++i) job.start.ranks.push_back({.processor = {i}, .memory_bytes = 1e6});
  job.work = {1.00e9, 1.01e9, 0.99e9, 1e9};
  job.hears.resize(4);
  job.supersteps = 600;
  return job;
}

// As the operator does: where a rank has run, the Set's real speed is known; `factor` is how far it is from the assumption.
inline LoopView measuring(const LoopJob& job, double factor) {
  return [&job, factor](MeasuredSuperstep&, const std::vector<ProcessorId>& on, Snapshot& known) {
    for (const ProcessorId p : on) {
      const SetId j = job.set_of(p);
      if (!std::exchange(known.platform.sets[j.value].untried, false)) continue;
      for (Processor& q : known.platform.processors)
        if (q.set == j) q.cpu *= factor;
    }
  };
}

// All plans of the run.
struct Plans {
  std::vector<Plan> all{};
  LoopPlanner planner() {
    return [this](const Snapshot& snapshot, const Window& window, const Params& params) {
      Result<Plan> plan = make_plan(snapshot, window, params);
      if (plan && !plan->moves.empty()) all.push_back(*plan);
      return plan;
    };
  }
};

inline LoopRun run_with_truth(LoopJob& job, double factor, Plans& plans, const Params& params = auto_params()) {
  job.pace = [&job, factor](std::uint64_t, std::uint32_t p) { return job.set_of({p}).value == 1 ? factor : 1; };
  return run_loop(job, params, 0.02, 1, plans.planner(), measuring(job, factor));
}

}  // namespace bsp::decide
