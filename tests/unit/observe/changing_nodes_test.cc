// Nodes that change while a long job runs: they are slow for a while, slow down late and by little, or turn out to be what the
// model doesn't know. As in slow_node_test.cc, the whole way from what was measured to the moves and what they gain.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "operator/decide/auto.h"
#include "tests/unit/observe/operator_loop.h"

namespace bsp::observe {
namespace {

constexpr std::uint64_t kSeed = 20261127;

struct Pool {
  std::string set;
  std::uint32_t nodes;
  double cpu;
};

// A ring of ranks with 10⁹ instructions a superstep on the first nodes of the first pool.
decide::LoopJob ring_on(const std::vector<Pool>& pools, std::uint32_t ranks, std::uint64_t supersteps) {
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

OperatorLoop automatic() {
  OperatorLoop loop;
  decide::take_heuristic(loop.params, crds::Heuristic::kAuto);
  return loop;
}

decide::LoopRun run(const char* what, const decide::LoopJob& job) {
  const decide::LoopRun run = run_as_operator(job, automatic(), kSeed);
  std::printf("%s: %.0f s without moves, %.0f s, %llu moves, %llu calls\n", what, job.seconds_without_moves(),
              run.makespan, static_cast<unsigned long long>(run.moves), static_cast<unsigned long long>(run.calls));
  return run;
}

// By less than lets the balance flip, in a job that was balanced for thousands of supersteps.
TEST(ChangingNodes, OneThatSlowsDownLateIsLeft) {
  for (const std::uint32_t ranks : {2u, 4u, 16u}) {
    decide::LoopJob job = ring_on({{"a", ranks + 2, 1e9}}, ranks, 8200);
    job.pace = [](std::uint64_t t, std::uint32_t p) { return p == 0 && t >= 4100 ? 0.6 : 1.0; };
    EXPECT_LE(run("slows down late", job).makespan, 8200 * 1.03) << ranks;  // 10,933 without a move
  }
}

// The rest of the job would run on the slow pool.
TEST(ChangingNodes, OneThatWasSlowForAWhileIsUsedAgain) {
  for (const double slow : {0.5, 0.8}) {
    decide::LoopJob job = ring_on({{"fast", 8, 1e9}, {"slow", 4, slow * 1e9}}, 8, 4000);
    job.pace = [](std::uint64_t t, std::uint32_t p) { return p == 0 && t >= 200 && t < 230 ? 0.3 : 1.0; };
    EXPECT_LE(run("slow for 30 supersteps", job).makespan, 4070 * 1.03) << slow;
    job.pace = [](std::uint64_t t, std::uint32_t p) { return p == 0 && t >= 200 && t < 1000 ? 0.3 : 1.0; };
    EXPECT_LE(run("slow for 800 supersteps", job).makespan, job.seconds_without_moves()) << slow;
  }
}

TEST(ChangingNodes, OneThatStaysSlowIsRarelyTriedAgain) {
  for (const double slow : {0.5, 0.8}) {
    decide::LoopJob job = ring_on({{"fast", 8, 1e9}, {"slow", 4, slow * 1e9}}, 8, 4000);
    job.pace = [](std::uint64_t t, std::uint32_t p) { return p == 0 && t >= 200 ? 0.3 : 1.0; };
    const decide::LoopRun seen = run("slow for good", job);
    EXPECT_LE(seen.makespan, (200 + 3800 / slow) * 1.05) << slow;
    EXPECT_LE(seen.moves, 16u) << slow;
  }
}

TEST(ChangingNodes, EachSlowForAWhile) {
  double with = 0, without = 0;
  for (std::uint64_t w = 0; w < 6; ++w) {
    std::mt19937_64 random(w + 1);
    std::vector<std::uint64_t> from;
    for (int p = 0; p < 12; ++p) from.push_back(100 + random() % 2400);
    decide::LoopJob job = ring_on({{"fast", 8, 1e9}, {"slow", 4, 0.6e9}}, 8, 3000);
    job.pace = [from](std::uint64_t t, std::uint32_t p) { return t >= from[p] && t < from[p] + 60 ? 0.3 : 1.0; };
    with += run("each slow once", job).makespan;
    without += job.seconds_without_moves();
  }
  EXPECT_LE(with, 0.92 * without);
}

// A ring that two ranks or more cut in two takes longer than its messages say.
TEST(ChangingNodes, WhatTheModelDoesNotKnowIsNotTriedForEver) {
  for (const std::uint64_t supersteps : {1500, 6000}) {
    decide::LoopJob job = ring_on({{"a", 8, 1e9}, {"b", 9, 1.3e9}}, 9, supersteps);
    job.start.platform.Mig = decide::Grid<double>(1, 2, 1.0);
    for (std::uint32_t i = 0; i < 9; ++i) job.work[i] = i < 3 ? 1.3e9 : 0.8e9;
    job.unexplained = [&job](const std::vector<ProcessorId>& on) {
      const auto in_b = std::ranges::count_if(on, [&](ProcessorId p) { return job.set_of(p).value == 1; });
      return in_b > 1 && in_b < 9 ? 0.6 : 0.0;
    };
    EXPECT_LE(run("a ring cut in two", job).makespan, job.seconds_without_moves() * 1.03) << supersteps;
  }
}

}  // namespace
}  // namespace bsp::observe
