// The lower bound that bench_decisions compares with: against every mapping of few ranks, and against runs.
#include "tests/bench/least_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "operator/decide/auto/auto.h"

namespace bsp::decide {
namespace {

constexpr std::uint64_t kLeastRunSeed = 20261126;

// Few ranks, on nodes of one to three slots, of unequal speed in a Set too, with some slots taken by nobody and any partners.
LoopJob few_ranks(std::mt19937_64& random, int n) {
  LoopJob job = random_loop_job(random, {.least_ranks = 3,
                                         .most_ranks = 6,
                                         .spare = 0.25,
                                         .least_steps = n % 2 == 0 ? 20u : 500u,
                                         .most_steps = 1000,
                                         .shared = n % 5 == 0});
  Platform& platform = job.start.platform;
  if (n % 3 == 1) {  // two or three ranks share some nodes
    platform.processors.resize(std::max<std::size_t>(platform.sets.size(), 3));
    const std::size_t nodes = platform.processors.size();
    for (std::size_t p = 0; p < nodes; ++p) {
      platform.processors[p].slots = 2 + static_cast<std::uint32_t>(random() % 2);
      platform.processors[p].cpu *= std::uniform_real_distribution(1.0, 2.5)(random);
    }
    for (std::size_t i = 0; i < job.work.size(); ++i)
      job.start.ranks[i].processor = {static_cast<std::uint32_t>(i % nodes)};
  }
  if (n % 4 == 2)
    for (auto& partners : job.hears) {
      for (LoopJob::Partner& k : partners) k.from = static_cast<std::uint32_t>(random() % job.work.size());
      for (LoopJob::Partner& k : partners) k.bytes *= 4;
    }
  return job;
}

TEST(LeastRun, NoMappingIsShorter) {
  std::mt19937_64 random(kLeastRunSeed);
  double tight = 0, loose = 0;
  constexpr int kWorlds = 150;
  for (int n = 0; n < kWorlds; ++n) {
    const LoopJob job = few_ranks(random, n);
    const double optimum = exhaustive_optimum(job), bound = least_run_seconds(job),
                 simple = static_cast<double>(job.supersteps) * least_superstep_seconds(job);
    EXPECT_LE(bound, optimum * (1 + 1e-9)) << n;
    EXPECT_GE(bound, simple * (1 - 1e-9)) << n;
    tight += optimum / bound - 1;
    loose += optimum / simple - 1;
  }
  std::printf("the optimum of %d worlds is %.2f %% above the bound, %.2f %% above the loose one\n", kWorlds,
              100 * tight / kWorlds, 100 * loose / kWorlds);
  EXPECT_LT(tight, 0.5 * loose);
}

// The rules that rule mappings out, each against all mappings: what there is, may exist.
TEST(LeastRun, WhatThereIsIsNotRuledOut) {
  std::mt19937_64 random(kLeastRunSeed + 1);
  int ruled_out = 0, worlds = 0;
  for (int n = 0; n < 300; ++n) {
    const LoopJob job = few_ranks(random, n);
    LeastRun bound(job);
    std::vector<ProcessorId> slots, on, home;
    for (std::uint32_t p = 0; p < job.start.platform.processors.size(); ++p)
      slots.insert(slots.end(), job.start.platform.processors[p].slots, ProcessorId{p});
    for (const Rank& rank : job.start.ranks) home.push_back(rank.processor);
    for (int m = 0; m < 20; ++m) {
      std::ranges::shuffle(slots, random);
      on.assign(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(home.size()));
      LoopJob alone = job;
      alone.capacity = {};
      const double time = std::ranges::max(job.busy(on, 1)), comm = alone.communication(on),
                   pause = alone.pause(home, on);
      EXPECT_TRUE(bound.may_exist(time, comm, pause)) << n << ", " << m;
      ruled_out += !bound.may_exist(0.7 * time, 0.7 * comm, pause);
      ++worlds;
    }
  }
  EXPECT_GT(ruled_out, worlds / 4) << "the rules say something";
}

TEST(LeastRun, NoRunIsShorter) {
  std::mt19937_64 random(kLeastRunSeed + 2);
  for (int n = 0; n < 30; ++n) {
    const LoopJob job = random_loop_job(
        random,
        {.least_ranks = 4, .most_ranks = 24, .spare = n % 2 == 0 ? 0.5 : 0.1, .least_steps = 50, .most_steps = 300});
    Params params;
    take_heuristic(params, Heuristic::kAuto);
    params.expected_supersteps = job.supersteps;
    EXPECT_GE(run_loop(job, params, 0, 1).makespan, least_run_seconds(job) * (1 - 1e-9)) << n;
  }
}

}  // namespace
}  // namespace bsp::decide
