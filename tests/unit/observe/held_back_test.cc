// Nodes that are slow for a while, and ranks that their own CPU limit makes look so: hardly a rank moves for that, and what is really
// faster is found all the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "operator/decide/auto/auto.h"
#include "operator/observe/work.h"
#include "tests/unit/observe/operator_loop.h"

namespace bsp::observe {
namespace {

constexpr std::uint64_t kHeldBackSeed = 20261127;

// A limit's periods and supersteps keep in step for a while: a rank computes at a quarter of its node's speed for 8 supersteps in the
// mean, then at all of it for 24.
void hold_back(decide::LoopJob& job, std::mt19937_64& random) {
  std::vector<std::vector<double>> pace(job.start.platform.processors.size());
  std::uniform_real_distribution<double> chance;
  for (auto& of_processor : pace) {
    bool held = chance(random) < 0.25;
    for (std::uint64_t t = 0; t <= job.supersteps; ++t) {
      of_processor.push_back(held ? 0.25 : 1);
      if (chance(random) < (held ? 1.0 / 8 : 1.0 / 24)) held = !held;
    }
  }
  job.pace = [pace = std::move(pace)](std::uint64_t t, std::uint32_t p) { return pace[p][t]; };
}

// Six ranks on ten nodes of one kind.
decide::LoopJob on_equal_nodes() {
  decide::LoopJob job;
  decide::Platform& platform = job.start.platform;
  platform.sets = {{.name = "a"}, {.name = "b"}};
  platform.T = decide::Grid<double>(2, 2, 1 / 1e9);
  platform.Mig = decide::Grid<double>(1, 2, 0.3);
  for (std::uint32_t p = 0; p < 10; ++p)
    platform.processors.push_back({.name = "node-" + std::to_string(p), .set = {p % 2}, .cpu = 1e9, .slots = 1});
  for (std::uint32_t i = 0; i < 6; ++i) {
    job.start.ranks.push_back({.processor = {i}, .memory_bytes = 50e6});
    job.work.push_back(0.1e9);
    job.hears.push_back({{(i + 1) % 6, 1e5}, {(i + 5) % 6, 1e5}});
  }
  job.supersteps = 1000;
  return job;
}

// As the operator learns where only CPU time is known.
void learn_by_cpu_time(SuperstepTimes& times) {
  leave_out_limits(times, std::vector<std::uint8_t>(times.instructions.size(), 1), WorkUnit::kCpuTime);
}

OperatorLoop loop_of_auto() {
  OperatorLoop loop;
  decide::take_heuristic(loop.params, crds::Heuristic::kAuto);
  return loop;
}

TEST(HeldBack, NobodyMovesForALimitThatIsTheSameEverywhere) {
  std::mt19937_64 random(kHeldBackSeed);
  OperatorLoop loop = loop_of_auto();
  std::uint64_t unknown = 0, by_cpu_time = 0;
  constexpr std::uint64_t kJobs = 30;
  for (std::uint64_t w = 0; w < kJobs; ++w) {
    decide::LoopJob job = on_equal_nodes();
    hold_back(job, random);
    const auto moves = [&](auto learns) {
      loop.learns = learns;
      return run_as_operator(job, loop, kHeldBackSeed + w).moves;
    };
    unknown += moves(decltype(loop.learns){});
    by_cpu_time += moves(learn_by_cpu_time);
  }
  std::printf("held back, %llu jobs: %llu moves, %llu by CPU time\n", static_cast<unsigned long long>(kJobs),
              static_cast<unsigned long long>(unknown), static_cast<unsigned long long>(by_cpu_time));
  EXPECT_EQ(by_cpu_time, 0u);
  EXPECT_GT(unknown, 2 * kJobs) << "else these jobs show nothing";
  EXPECT_LT(unknown, 12 * kJobs) << "44 a job without steadiness.h";
}

// Sets of different speed, whose nodes are slow for a while besides.
TEST(HeldBack, WhatIsFasterIsFoundAllTheSame) {
  std::mt19937_64 random(kHeldBackSeed);
  const OperatorLoop loop = loop_of_auto();
  double logs = 0, worst = 0;
  constexpr int kJobs = 8;
  for (std::uint64_t w = 0; w < kJobs; ++w) {
    decide::LoopJob job =
        decide::random_loop_job(random, {.most_ranks = 32, .least_steps = 400, .most_steps = 800, .crowded = false});
    hold_back(job, random);
    const double ratio = run_as_operator(job, loop, kHeldBackSeed + w).makespan / job.seconds_without_moves();
    logs += std::log(ratio) / kJobs;
    worst = std::max(worst, ratio);
  }
  std::printf("nodes slow for a while: gain %.1f %%, worst %+.1f %%\n", 100 * (1 - std::exp(logs)), 100 * (worst - 1));
  EXPECT_LE(worst, 1.01) << "5.8 % longer without steadiness.h";
}

}  // namespace
}  // namespace bsp::observe
