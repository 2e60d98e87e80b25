// Auto by price and by deadline (auto/price.h): what it costs and how long it takes in complete runs, beside Auto by time.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "operator/decide/auto/auto.h"
#include "operator/decide/explain.h"
#include "tests/bench/priced_worlds.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

Params params_of(ObjectiveType objective) {
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  params.objective = objective;
  return params;
}

TEST(Price, CostsLessAndTakesHardlyLonger) {
  double cost = 0, time = 0;
  constexpr int kWorlds = 6;
  for (int world = 0; world < kWorlds; ++world) {
    std::mt19937_64 random(static_cast<std::uint64_t>(world) + 100);
    const LoopJob job = with_spot_pools(random, {.most_ranks = 24});
    const LoopRun quick = run_loop(job, params_of(ObjectiveType::kTime), 0.02, 1);
    const LoopRun cheap = run_loop(job, params_of(ObjectiveType::kPrice), 0.02, 1);
    EXPECT_LT(cheap.cost, quick.cost) << world;
    EXPECT_LT(cheap.makespan, 1.12 * quick.makespan) << world;
    cost += std::log(cheap.cost / quick.cost) / kWorlds;
    time += std::log(cheap.makespan / quick.makespan) / kWorlds;
  }
  EXPECT_LT(std::exp(cost), 0.6);
  EXPECT_LT(std::exp(time), 1.1);
}

TEST(Price, LeavesADearNodeForAnEmptyOneWhereOthersHaveFreeSlotsToo) {
  World world({{"fast", 4, 1e9, 2}}, {0, 1, 2});
  for (Processor& p : world.snapshot.platform.processors) p.price = 0.5;
  world.snapshot.platform.processors[1].price = 2.5;
  const auto plan = world.plan(params_of(ObjectiveType::kPrice));
  ASSERT_TRUE(plan);
  std::string text;
  for (const std::string& line : explain(*plan, world.snapshot)) text += line + "\n";
  ASSERT_EQ(plan->moves.size(), 1u) << text;
  EXPECT_EQ(plan->moves[0].rank.value, 1u);
  EXPECT_EQ(plan->moves[0].to.value, 3u);
}

TEST(Price, TimeDoesNotReadPrices) {
  std::mt19937_64 random(7);
  LoopJob job = with_spot_pools(random, {.most_ranks = 24});
  const LoopRun with = run_loop(job, params_of(ObjectiveType::kTime), 0.02, 3);
  for (Processor& p : job.start.platform.processors) p.price = 0;
  const LoopRun without = run_loop(job, params_of(ObjectiveType::kTime), 0.02, 3);
  EXPECT_EQ(with.makespan, without.makespan);
  EXPECT_EQ(with.on, without.on);
  EXPECT_EQ(with.moved_at, without.moved_at);
}

TEST(Price, EqualPricesMoveNobodyForThem) {
  std::mt19937_64 random(11);
  LoopJob job = random_loop_job(random, {.most_ranks = 12});
  for (Processor& p : job.start.platform.processors) p.price = 2;
  const LoopRun quick = run_loop(job, params_of(ObjectiveType::kTime), 0.02, 3);
  const LoopRun cheap = run_loop(job, params_of(ObjectiveType::kPrice), 0.02, 3);
  EXPECT_LT(cheap.makespan, 1.1 * quick.makespan);
  EXPECT_LT(cheap.cost, 1.1 * quick.cost);
}

// A saving below the threshold: 0.4 % of the rate.
TEST(Price, WhatSavesNextToNothingIsLeft) {
  std::mt19937_64 random(5);
  LoopJob job = random_loop_job(random, {.least_ranks = 8, .most_ranks = 8, .crowded = false});
  for (double& work : job.work) work = 1e9;
  for (auto& partners : job.hears) partners.clear();
  for (Processor& p : job.start.platform.processors) p.cpu = 1e9;
  std::vector<bool> held(job.start.platform.processors.size());
  for (const Rank& rank : job.start.ranks) held[rank.processor.value] = true;
  for (std::uint32_t p = 0; p < held.size(); ++p) job.start.platform.processors[p].price = held[p] ? 1 : 0.996;
  EXPECT_EQ(run_loop(job, params_of(ObjectiveType::kPrice), 0, 1).moves, 0u);
  for (std::uint32_t p = 0; p < held.size(); ++p) job.start.platform.processors[p].price = held[p] ? 1 : 0.3;
  EXPECT_GT(run_loop(job, params_of(ObjectiveType::kPrice), 0, 1).moves, 0u);
}

// The pool where the job runs becomes three times as dear in the middle of the run.
TEST(Price, FollowsAPriceThatChanges) {
  std::mt19937_64 random(21);
  LoopJob job = with_spot_pools(random, {.most_ranks = 24});
  const auto first = static_cast<std::uint32_t>(job.start.platform.processors.size() / 2);
  job.price = [&](std::uint64_t t, std::uint32_t p) {
    const bool spot = p >= first, later = t > job.supersteps / 2;
    return spot != later ? 1.0 : 3.0;
  };
  const LoopRun run = run_loop(job, params_of(ObjectiveType::kPrice), 0.02, 1);
  double spot = 0;
  for (const ProcessorId p : run.on) spot += p.value >= first;
  EXPECT_LT(spot, 0.3 * static_cast<double>(run.on.size()));
}

TEST(Deadline, IsMetAsCheaplyAsItCanBe) {
  double cost = 0;
  constexpr int kWorlds = 12;
  for (int world = 0; world < kWorlds; ++world) {
    std::mt19937_64 random(static_cast<std::uint64_t>(world) + 300);
    LoopJob job = with_spot_pools(random, {.most_ranks = 24});
    Params time = params_of(ObjectiveType::kTime), by = params_of(ObjectiveType::kDeadline);
    time.expected_supersteps = by.expected_supersteps = job.supersteps;
    const LoopRun quick = run_loop(job, time, 0.02, 1);
    job.deadline = 1.15 * quick.makespan;
    const LoopRun cheap = run_loop(job, by, 0.02, 1);
    EXPECT_LE(cheap.makespan, job.deadline) << world;
    cost += std::log(cheap.cost / quick.cost) / kWorlds;
  }
  EXPECT_LT(std::exp(cost), 0.7);
}

TEST(Deadline, ThatCanNotBeMetIsMissedByLittle) {
  std::mt19937_64 random(31);
  LoopJob job = with_spot_pools(random, {.most_ranks = 24});
  Params time = params_of(ObjectiveType::kTime), by = params_of(ObjectiveType::kDeadline);
  time.expected_supersteps = by.expected_supersteps = job.supersteps;
  const LoopRun quick = run_loop(job, time, 0.02, 1);
  job.deadline = 0.5 * quick.makespan;
  EXPECT_LT(run_loop(job, by, 0.02, 1).makespan, 1.02 * quick.makespan);
}

TEST(Deadline, NeedsTheLength) {
  const auto good = validate(params_of(ObjectiveType::kDeadline));
  ASSERT_FALSE(good);
  EXPECT_NE(good.error().message.find("expected_supersteps"), std::string::npos) << good.error().message;
}

// What the first call of a run that moves ranks says.
std::string first_wave_of(const LoopJob& job, ObjectiveType objective) {
  std::string text;
  const LoopPlanner planner = [&](const Snapshot& snapshot, const Window& window, const Params& params) {
    Result<Plan> plan = make_plan(snapshot, window, params);
    if (plan && !plan->moves.empty() && text.empty())
      for (const std::string& line : explain(*plan, snapshot)) text += line + "\n";
    return plan;
  };
  run_loop(job, params_of(objective), 0.02, 1, planner);
  return text;
}

// The calls of a run say in money what they change, and of what is owed that it isn't time.
TEST(Price, IsExplained) {
  std::mt19937_64 random(41);
  const LoopJob job = with_spot_pools(random, {.most_ranks = 24});
  const std::string text = first_wave_of(job, ObjectiveType::kPrice);
  EXPECT_NE(text.find("the ranks' slots cost "), std::string::npos) << text;
  EXPECT_NE(text.find(" an hour, "), std::string::npos) << text;
  EXPECT_NE(text.find("the supersteps to come may take "), std::string::npos) << text;
  EXPECT_NE(text.find(", owed 0 s, at the price of a second where the job began\n"), std::string::npos) << text;
  EXPECT_NE(first_wave_of(job, ObjectiveType::kTime).find(", owed 0 s\n"), std::string::npos) << "seconds of time";
}

}  // namespace
}  // namespace bsp::decide
