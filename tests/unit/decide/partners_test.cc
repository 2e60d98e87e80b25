// Whom ranks hear from: what Auto makes of it, that it never believes more than was received, and that no published
// heuristic sees it.
#include "operator/decide/auto/partners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "operator/decide/auto/auto.h"
#include "operator/decide/explain.h"
#include "operator/decide/make_plan.h"
#include "tests/bench/closed_loop.h"
#include "tests/unit/decide/measured_job.h"
#include "tests/unit/decide/random_job.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

constexpr std::uint64_t kPartnersSeed = 20261124;

std::vector<ProcessorId> any_mapping(const LoopJob& job, std::mt19937_64& random) {
  std::vector<ProcessorId> slots, on;
  for (std::uint32_t p = 0; p < job.start.platform.processors.size(); ++p)
    slots.insert(slots.end(), job.start.platform.processors[p].slots, ProcessorId{p});
  std::ranges::shuffle(slots, random);
  for (std::size_t i = 0; i < job.work.size(); ++i) on.push_back(slots[i]);
  return on;
}

TEST(Partners, WhatAMappingTakesIsExactWhereAllAreKnown) {
  std::mt19937_64 random(kPartnersSeed);
  for (int n = 0; n < 200; ++n) {
    const MeasuredJob all(random_loop_job(random, {.least_ranks = 3, .most_ranks = 20}), true);
    const std::vector<ProcessorId> on = any_mapping(all.job, random);
    const double real = all.job.communication(on);
    EXPECT_NEAR(std::ranges::max(all.seconds(on)), real, 1e-9 * real) << n;
  }
}

// As it was before partners were known: the mean over where a Set's ranks are then. Bit for bit.
TEST(Partners, WithoutThemItIsTheMeanOverASetsRanks) {
  std::mt19937_64 random(kPartnersSeed + 1);
  for (int n = 0; n < 100; ++n) {
    const MeasuredJob none(random_loop_job(random, {.least_ranks = 3, .most_ranks = 20}), false);
    const std::vector<ProcessorId> on = any_mapping(none.job, random);
    const std::size_t sets = none.columns.sets;
    const auto set_of = [&](std::size_t i) { return none.columns.set[on[i].value].value; };
    const std::vector<double> seconds = none.seconds(on);
    for (std::size_t i = 0; i < on.size(); ++i) {
      double plain = 0;
      for (std::size_t k = 0; k < sets; ++k) {
        if (none.metrics.last.recv_bytes[i, k] == 0) continue;
        double per_byte = 0, were = 0;
        std::vector<double> went(sets, 0);
        for (std::size_t m = 0; m < on.size(); ++m)
          if (none.columns.own[m].value == k) ++were, ++went[set_of(m)];
        for (std::size_t m = 0; m < sets; ++m)
          if (went[m] > 0) per_byte += went[m] / were * none.job.start.platform.T[m, set_of(i)];
        plain += none.metrics.last.recv_bytes[i, k] * per_byte;
      }
      EXPECT_EQ(std::bit_cast<std::uint64_t>(seconds[i]), std::bit_cast<std::uint64_t>(plain)) << n << ", rank " << i;
    }
  }
}

// Whatever a rank claims, it is charged what it received from each Set.
TEST(Partners, ClaimsAreCutToWhatWasReceived) {
  std::mt19937_64 random(kPartnersSeed + 2);
  for (const double claim : {0.0, 1.0, 1e7, 1e19, 1e300, std::numeric_limits<double>::max()})
    for (int n = 0; n < 20; ++n) {
      LoopJob job = random_loop_job(random, {.least_ranks = 4, .most_ranks = 12});
      const std::vector<double> plain = MeasuredJob(job, false).seconds(columns_of(job.start)->on);
      for (std::uint32_t i = 0; i < job.work.size(); ++i)
        for (std::uint32_t k = 0; k < job.work.size(); ++k)
          if (k != i && random() % 2) job.start.ranks[i].partners.push_back({.rank = {k}, .bytes = claim});
      const MeasuredJob claimed(job, false);
      const std::vector<double> seconds = claimed.seconds(claimed.columns.on);
      for (std::size_t i = 0; i < seconds.size(); ++i)
        EXPECT_NEAR(seconds[i], plain[i], 1e-9 * plain[i]) << claim << ", no rank has moved";
    }
}

// Ranks 0 and 1 have most to do and hear from each other, as 2 and 3 do. Two slots of a fast Set are free. By Set alone, rank 2
// seems to hear half of what it hears from there then.
LoopJob two_pairs() {
  LoopJob job;
  job.start.platform = platform_of({{.name = "slow", .processors = 4, .cpu = 1e9, .slots = 1},
                                    {.name = "fast", .processors = 2, .cpu = 2e9, .slots = 1}});
  job.start.platform.T = Grid<double>(2, 2, 1e-6);
  job.start.platform.T[0, 0] = job.start.platform.T[1, 1] = 1e-9;
  job.start.platform.Mig = Grid<double>(1, 2, 0.1);
  job.work = {1e9, 1e9, 0.4e9, 0.4e9};
  job.hears = {{{1, 1e6}}, {{0, 1e6}}, {{3, 1e6}}, {{2, 1e6}}};
  for (std::uint32_t i = 0; i < 4; ++i) job.start.ranks.push_back({.processor = {i}});
  job.supersteps = 100;
  return job;
}

TEST(Partners, ThoseWhoTalkMoveTogether) {
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  const LoopRun run = run_loop(two_pairs(), params, 0, 1);
  EXPECT_EQ(run.moves, 2u);
  EXPECT_GE(run.on[0].value, 4u);
  EXPECT_GE(run.on[1].value, 4u);
  EXPECT_EQ(run_loop(two_pairs(), params, 0, 1, plan_without_partners).moves, 0u);
}

TEST(Partners, OneThatMayNotMoveStays) {
  LoopJob job = two_pairs();
  job.start.ranks[1].not_migratable = "an open RMA window";
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  EXPECT_EQ(run_loop(job, params, 0, 1).moves, 0u) << "rank 0 alone would hear over the slow link";
}

// One who lacks a feature there, has left it, costs too much there, or finds one slot, doesn't go with a partner.
TEST(Partners, EveryStepObeysWhatHoldsForAnyMove) {
  std::mt19937_64 random(kPartnersSeed + 3);
  int steps = 0;
  for (int n = 0; n < 300; ++n) {
    LoopJob job = random_loop_job(random, {.least_ranks = 4, .most_ranks = 16, .spare = 0.2});
    for (Rank& rank : job.start.ranks) {
      if (random() % 8 == 0) rank.not_migratable = "a window";
      if (random() % 8 == 0)
        rank.left = {{static_cast<std::uint32_t>(random() % job.start.platform.processors.size())}};
      if (random() % 8 == 0) rank.no_moves_to = {{static_cast<std::uint32_t>(random() % 2)}};
    }
    if (random() % 4 == 0) job.start.platform.processors[0].cordoned = true;
    if (random() % 4 == 0) job.start.platform.sets[1].cordoned = true;
    const MeasuredJob all(job, true);
    const Case c = all.of();
    const Heard heard(c);
    const double mu = 0.4 + 0.1 * static_cast<double>(random() % 10);
    double least = std::numeric_limits<double>::infinity();
    Together(c, all.job.work, heard, 100, mu).descend(all.columns.on, [&](std::span<const ProcessorId> on) {
      ++steps;
      std::vector<std::uint32_t> held(all.columns.set.size(), 0);
      for (std::uint32_t i = 0; i < on.size(); ++i) {
        ++held[on[i].value];
        if (on[i] == all.columns.on[i]) continue;
        const Rank& rank = all.job.start.ranks[i];
        const SetId j = all.columns.set[on[i].value];
        EXPECT_TRUE(rank.not_migratable.empty()) << n;
        EXPECT_FALSE(std::ranges::contains(rank.left, on[i])) << n;
        EXPECT_FALSE(std::ranges::contains(rank.no_moves_to, j)) << n;
        EXPECT_GT(all.columns.slots[on[i].value], 0u) << n << ": cordoned";
        const double T = all.job.start.platform.T[all.columns.own[i].value, j.value];
        EXPECT_LE(rank.memory_bytes * T + (all.job.start.platform.Mig[0, j.value]), mu) << n;
      }
      for (std::size_t p = 0; p < held.size(); ++p)
        EXPECT_LE(held[p], std::max(all.columns.slots[p], all.columns.held[p])) << n;
      const double superstep = all.job.superstep_seconds({on.begin(), on.end()});
      EXPECT_LT(superstep, 1.05 * least) << n;
      least = std::min(least, superstep);
    });
  }
  EXPECT_GT(steps, 200);
}

// What the operator knows of a job is checked before it is decided over.
TEST(Partners, AreAsTheyCanBe) {
  const LoopJob job = two_pairs();
  const auto decided_with = [&](std::vector<Partner> partners) {
    Snapshot snapshot = job.start;
    snapshot.ranks[1].partners = std::move(partners);
    return columns_of(snapshot).has_value();
  };
  EXPECT_TRUE(decided_with({}));
  EXPECT_TRUE(decided_with({{{0}, 1}, {{2}, 0}, {{3}, 1e300}}));
  EXPECT_FALSE(decided_with({{{4}, 1}})) << "there is no rank 4";
  EXPECT_FALSE(decided_with({{{~0u}, 1}}));
  EXPECT_FALSE(decided_with({{{1}, 1}})) << "itself";
  EXPECT_FALSE(decided_with({{{0}, 1}, {{2}, 1}, {{0}, 1}})) << "twice";
  EXPECT_FALSE(decided_with({{{0}, -1}}));
  EXPECT_FALSE(decided_with({{{0}, std::numeric_limits<double>::infinity()}}));
  EXPECT_FALSE(decided_with({{{0}, std::numeric_limits<double>::quiet_NaN()}}));
  EXPECT_FALSE(decided_with(std::vector<Partner>(kMostPartners + 1, Partner{{0}, 1})));
}

TEST(Partners, OnlyAutoReadsThem) {
  std::mt19937_64 random(kPartnersSeed + 4);
  int moved = 0;
  for (int n = 0; n < 60; ++n)
    for (const Strategy& strategy : strategies()) {
      if (strategy.heuristic == Heuristic::kAuto) continue;
      const OneSuperstep job(random, {.ranks = 12, .processors = 8, .sets = 3}, strategy.heuristic);
      Snapshot with = job.snapshot;
      for (std::uint32_t i = 0; i < with.ranks.size(); ++i)
        with.ranks[i].partners = {{{(i + 1) % 12}, 1e9}, {{(i + 5) % 12}, 1e6}};
      const Window window = job.window();
      const auto a = make_plan(job.snapshot, window, job.params), b = make_plan(with, window, job.params);
      ASSERT_TRUE(a && b);
      EXPECT_EQ(explain(*a, job.snapshot), explain(*b, with)) << strategy.name;
      EXPECT_EQ(a->objective.after, b->objective.after);
      EXPECT_EQ(a->forecast.after, b->forecast.after);
      moved += !a->moves.empty();
    }
  EXPECT_GT(moved, 60);
}

// The forecast of a plan is what then happens, where nothing is noisy.
TEST(Partners, TheForecastIsExact) {
  std::mt19937_64 random(kPartnersSeed + 5);
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  int waves = 0;
  for (int n = 0; n < 30; ++n) {
    const LoopJob job = random_loop_job(random, {.least_ranks = 4, .most_ranks = 16, .most_steps = 300});
    const LoopRun run = run_loop(job, params, 0, 1);
    for (std::size_t w = 0; w < run.predicted_seconds.size(); ++w, ++waves)
      EXPECT_NEAR(run.predicted_seconds[w], run.superstep_seconds[w] - run.superstep_seconds[w + 1],
                  1e-9 * run.superstep_seconds[w])
          << n;
  }
  EXPECT_GT(waves, 30);
}

// Few ranks, where every mapping can be tried.
TEST(Partners, AreWorthWhatTheOptimumShows) {
  std::mt19937_64 random(kPartnersSeed + 6);
  double with = 0, without = 0;
  constexpr int kWorlds = 60;
  for (int n = 0; n < kWorlds; ++n) {
    const LoopJob job = random_loop_job(
        random, {.least_ranks = 4, .most_ranks = 6, .spare = 0.25, .least_steps = 1000, .most_steps = 1000});
    Params params;
    take_heuristic(params, Heuristic::kAuto);
    params.expected_supersteps = job.supersteps;
    const double optimum = exhaustive_optimum(job);
    with += run_loop(job, params, 0, 1).makespan / optimum - 1;
    without += run_loop(job, params, 0, 1, plan_without_partners).makespan / optimum - 1;
  }
  std::printf("Auto above the optimum: %.2f %% with partners, %.2f %% without\n", 100 * with / kWorlds,
              100 * without / kWorlds);
  EXPECT_LT(with, without);
  EXPECT_LT(with / kWorlds, 0.03);
}

}  // namespace
}  // namespace bsp::decide
