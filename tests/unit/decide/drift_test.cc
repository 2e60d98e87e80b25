// Auto where work drifts steadily: it decides on what was measured, and again when the balance flips. This shows what a forecast of
// the drift could gain beyond that.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "operator/decide/auto/auto.h"
#include "tests/bench/closed_loop.h"

namespace bsp::decide {
namespace {

// Each superstep in the time of the loose bound, on the best mapping for it, with no pause between them: no forecast reaches that.
double least_seconds(const LoopJob& job) {
  double least = 0;
  for (std::uint64_t t = 1; t <= job.supersteps; ++t) {
    LoopJob of_superstep{.start = job.start, .hears = job.hears};
    for (std::uint32_t i = 0; i < job.work.size(); ++i) of_superstep.work.push_back(job.work_of(i, t));
    least += least_superstep_seconds(of_superstep);
  }
  return least;
}

double makespan(const LoopJob& job) {
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  return run_loop(job, params, 0.02, 20261128).makespan;
}

// Ranks get up to five times as much work over the run, or a fifth: what Auto takes longer than the bound then, and where the same
// jobs don't drift.
TEST(DriftingWork, LeavesAForecastLessThanFivePercent) {
  std::mt19937_64 random(20261128);
  double drifting = 0, steady = 0;
  constexpr int kWorlds = 24;
  for (int w = 0; w < kWorlds; ++w) {
    LoopJob job = random_loop_job(random, {.least_ranks = 8, .most_ranks = 32, .spare = w % 2 == 0 ? 0.5 : 0.1});
    steady += std::log(makespan(job) / least_seconds(job));
    std::vector<double> factor;  // from the middle of the run to its end
    for (std::size_t i = 0; i < job.work.size(); ++i)
      factor.push_back(std::exp(std::uniform_real_distribution(-0.8, 0.8)(random)));
    job.drift = [factor, steps = static_cast<double>(job.supersteps)](std::uint64_t t, std::uint32_t i) {
      return std::pow(factor[i], 2 * static_cast<double>(t) / steps - 1);
    };
    const double took = makespan(job);
    EXPECT_LE(took, 1.01 * job.seconds_without_moves()) << w;
    drifting += std::log(took / least_seconds(job));
  }
  const double above = std::exp(drifting / kWorlds), above_steady = std::exp(steady / kWorlds);
  std::printf("above the bound: %.1f %% where work drifts, %.1f %% where it doesn't\n", 100 * (above - 1),
              100 * (above_steady - 1));
  EXPECT_LT(above / above_steady, 1.05);
}

}  // namespace
}  // namespace bsp::decide
