// Nodes that change while a long job runs: they are slow for a while, slow down late and by little, or turn out to be what the
// model doesn't know. As in slow_node_test.cc, the whole way from what was measured to the moves and what they gain.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/unit/observe/operator_loop.h"
#include "tests/unit/observe/ring_on.h"

namespace bsp::observe {
namespace {

constexpr std::uint64_t kSeed = 20261127;

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

TEST(ChangingNodes, WhatTheModelDoesNotKnowIsNotTriedForEver) {
  for (const std::uint64_t supersteps : {1500, 6000, 20'000}) {
    const decide::LoopJob job = cut_in_two(supersteps, 1.0);
    EXPECT_LE(run("a ring cut in two", job).makespan, job.seconds_without_moves() * 1.03) << supersteps;
  }
}

// A slot that one wave leaves is taken by the next. To undo that one alone would lead to a mapping that was never judged.
TEST(ChangingNodes, WavesThatFollowEachOtherAreTakenBackTogether) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const decide::LoopJob job = cut_in_two(20'000);
    const decide::LoopRun all = run_as_operator(job, automatic(), seed);
    EXPECT_LE(all.makespan, job.seconds_without_moves() * 1.01) << seed;
  }
}

}  // namespace
}  // namespace bsp::observe
