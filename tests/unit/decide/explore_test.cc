// A Set of unknown speed that is assumed to be no gain: one rank finds out whether it is one.
#include "operator/decide/auto/explore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <set>

#include "operator/decide/auto/auto.h"
#include "operator/decide/auto/take_back.h"
#include "operator/decide/explain.h"
#include "operator/decide/make_plan.h"
#include "tests/unit/decide/untried_job.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kExploreSeed = 20261126;

// Four ranks in old, one of which has half of the others' work, and a Set without ranks that is assumed to be as fast.
LoopJob beside_an_equal_set(double mig = 0.2) {
  LoopJob job = beside_an_untried_set(mig);
  for (Processor& p : job.start.platform.processors) p.cpu = 1e9;
  job.work = {1.00e9, 1.01e9, 0.5e9, 1e9};
  return job;
}

std::size_t explorations(const Plans& plans) {
  return static_cast<std::size_t>(
      std::ranges::count_if(plans.all, [](const Plan& plan) { return plan.rules.explores; }));
}

Params with_length(const LoopJob& job, bool given) {
  Params params = auto_params();
  if (given) params.expected_supersteps = job.supersteps;
  return params;
}

TEST(Explore, AFasterSetThanAssumedIsFoundAndUsed) {
  for (const bool given : {false, true}) {
    LoopJob job = beside_an_equal_set();
    Plans plans;
    const LoopRun run = run_with_truth(job, 2, plans, with_length(job, given));
    ASSERT_GE(plans.all.size(), 2u) << given;
    EXPECT_TRUE(plans.all[0].rules.explores && plans.all[0].rules.tries);
    EXPECT_THAT(moved_ranks(plans.all[0]), ElementsAre(2u)) << "the one with least work";
    EXPECT_FALSE(plans.all[1].rules.tries);
    EXPECT_LE(run.moved_at[1] - run.moved_at[0], 2 * TakeBack::kMeasured) << "soon";
    EXPECT_EQ(explorations(plans), 1u);
    EXPECT_LT(run.makespan, 0.75 * job.seconds_without_moves());
    EXPECT_LT(run.superstep_seconds.back(), 0.6);
  }
}

// However long the job is, and wherever it ends: no more than 1 % is paid for a Set that is no gain.
TEST(Explore, ASlowerSetCostsOnePerCentAtMost) {
  for (const bool given : {false, true})
    for (const bool alike : {false, true})
      for (const double factor : {0.5, 0.7, 1.0})
        for (const std::uint64_t supersteps : {20, 60, 100, 130, 200, 300, 500, 520, 600, 1200, 2500}) {
          LoopJob job = beside_an_equal_set();
          if (alike) job.work[2] = 0.99e9;
          job.supersteps = supersteps;
          Plans plans;
          const LoopRun run = run_with_truth(job, factor, plans, with_length(job, given));
          EXPECT_LE(run.makespan, 1.01 * job.seconds_without_moves())
              << given << alike << ", " << factor << " times as fast, " << supersteps << " supersteps";
          EXPECT_LE(explorations(plans), 1u) << "never again";
          EXPECT_EQ(run.returns, 0u);
          if (supersteps == 2500) {
            EXPECT_EQ(explorations(plans), 1u) << given << alike << ", " << factor;
          }
        }
}

TEST(Explore, TheRankGoesBackIfItMakesSuperstepsLonger) {
  LoopJob job = beside_an_equal_set();
  job.work[2] = 0.99e9;
  job.supersteps = 2500;
  Plans plans;
  const LoopRun run = run_with_truth(job, 0.5, plans, with_length(job, true));
  ASSERT_THAT(plans.all, SizeIs(2));
  EXPECT_TRUE(plans.all[0].rules.explores && plans.all[1].rules.takes_back);
  EXPECT_EQ(run.moved_at[1] - run.moved_at[0], TakeBack::kMeasured);
  EXPECT_EQ(run.on, std::vector<ProcessorId>({{0}, {1}, {2}, {3}}));
}

TEST(Explore, ASetWhoseSpeedIsToldIsNot) {
  LoopJob job = beside_an_equal_set();
  job.supersteps = 2500;
  job.start.platform.sets[1].untried = false;
  for (const bool given : {false, true}) {
    Plans plans;
    run_with_truth(job, 2, plans, with_length(job, given));
    EXPECT_THAT(plans.all, IsEmpty()) << given;
  }
}

TEST(Explore, APauseThatDoesNotFitIsNotPaid) {
  for (const bool given : {false, true}) {
    LoopJob job = beside_an_equal_set(6);  // 0.9 % of 606 s are 5.5 s
    Plans plans;
    run_with_truth(job, 2, plans, with_length(job, given));
    EXPECT_THAT(plans.all, IsEmpty()) << given;
    job.supersteps = 3000;
    run_with_truth(job, 2, plans, with_length(job, given));
    EXPECT_EQ(explorations(plans), 1u) << "a longer job can pay it";
  }
}

// A plan as it is made in superstep 2000 of a job that has owed nothing.
Plan late_plan(const World& w, Params params = auto_params()) {
  State state;
  state.cadence.k = {2000};
  state.cadence.elapsed = 2000;
  Window window(state, params, w.snapshot.ranks.size(), w.snapshot.platform.sets.size());
  for (std::uint64_t t = 2000; !window.call_due(); ++t) window.add(w.superstep(t));
  return make_plan(w.snapshot, window, params).value();
}

World equal_sets() {
  World w({{.name = "old", .processors = 3, .slots = 1}, {.name = "new", .processors = 3, .slots = 1}}, {0, 1, 2});
  w.snapshot.platform.sets[1].untried = true;
  w.instructions = {1e9, 0.5e9, 0.9e9};
  return w;
}

TEST(Explore, SaysItInPlainWords) {
  const World w = equal_sets();
  const Plan plan = late_plan(w);
  ASSERT_TRUE(plan.rules.explores);
  EXPECT_THAT(headline(plan, w.snapshot),
              HasSubstr("tries new, of whose speed nothing is known, with rank 1; if it is 2 times as fast as assumed, "
                        "time to the end "));
  EXPECT_THAT(describe(plan.moves[0], w.snapshot), HasSubstr("shows how fast new is, costs "));
  EXPECT_EQ(plan.next.alpha, TakeBack::kMeasured);
  EXPECT_GT(plan.next.wave.before, 0) << "it will be judged";
  EXPECT_NEAR(plan.next.owed, plan.moves[0].cost, 1e-12);
  EXPECT_LT(plan.objective.after, plan.objective.before);
}

TEST(Explore, NobodyGoesIfThereIsNothingToHopeFor) {
  const auto explores = [](const World& w) { return late_plan(w).rules.explores; };
  EXPECT_TRUE(explores(equal_sets()));
  World full = equal_sets();
  for (std::uint32_t p = 3; p < 6; ++p) full.snapshot.platform.processors[p].taken = 1;
  EXPECT_FALSE(explores(full)) << "no slot";
  World cordoned = equal_sets();
  cordoned.snapshot.platform.sets[1].cordoned = true;
  EXPECT_FALSE(explores(cordoned));
  World slow = equal_sets();
  for (std::uint32_t p = 3; p < 6; ++p) slow.snapshot.platform.processors[p].cpu = 0.4e9;
  EXPECT_FALSE(explores(slow)) << "twice as fast as assumed isn't fast enough";
  World few = equal_sets();  // one slot for three equal ranks: no superstep would be shorter
  few.instructions = {1e9, 1e9, 1e9};
  EXPECT_TRUE(explores(few));
  few.snapshot.platform.processors[3].taken = few.snapshot.platform.processors[4].taken = 1;
  EXPECT_FALSE(explores(few));
  World talks = equal_sets();  // its messages would take longer there than it computes
  for (std::uint32_t i = 0; i < 3; ++i) talks.recv_bytes[i, 0] = 0.6e9;
  EXPECT_FALSE(explores(talks));
}

TEST(Explore, WhoMayNotGoDoesNot) {
  World w = equal_sets();
  w.snapshot.ranks[1].not_migratable = "open RMA window";
  EXPECT_THAT(moved_ranks(late_plan(w)), ElementsAre(2u));
  w.snapshot.ranks[2].no_moves_to = {SetId{1}};
  EXPECT_THAT(moved_ranks(late_plan(w)), ElementsAre(0u));
  w = equal_sets();
  w.instructions[1] = 0.1e9;
  EXPECT_THAT(moved_ranks(late_plan(w)), ElementsAre(2u)) << "too little work to measure by";
  w = equal_sets();
  w.recv_bytes[1, 0] = 3e6;
  EXPECT_THAT(moved_ranks(late_plan(w)), ElementsAre(2u)) << "its messages would take 30 ms for the rest of the job";
  w = equal_sets();
  w.snapshot.ranks[1].memory_bytes = 1e9;
  EXPECT_THAT(moved_ranks(late_plan(w)), ElementsAre(2u)) << "its pause is 10 s, that of the other two 1 ms";
}

TEST(Explore, NobodyGoesWhereRanksDoNotMove) {
  Params params = auto_params();
  params.migrates = false;
  const World w = equal_sets();
  const Plan plan = late_plan(w, params);
  EXPECT_FALSE(plan.rules.explores);
  EXPECT_THAT(plan.moves, IsEmpty()) << "an advice that would be the same at every call";
  params = auto_params();
  params.heuristic = Heuristic::kBottleneck;
  EXPECT_THAT(late_plan(w, params).moves, IsEmpty());
}

// A move that fails is paid for, too, so that it isn't repeated at every call.
TEST(Explore, WhatItOwesKeepsItFromTryingAgain) {
  const World w = equal_sets();
  State state;
  state.cadence.k = {2000};
  state.cadence.elapsed = 2000;
  state.cadence.owed = 17.999;
  const Params params = auto_params();
  Window window(state, params, 3, 2);
  for (std::uint64_t t = 2000; !window.call_due(); ++t) window.add(w.superstep(t));
  EXPECT_TRUE(make_plan(w.snapshot, window, params)->rules.explores);
  state.cadence.owed = 18.2;
  Window owing(state, params, 3, 2);
  for (std::uint64_t t = 2000; !owing.call_due(); ++t) owing.add(w.superstep(t));
  EXPECT_FALSE(make_plan(w.snapshot, owing, params)->rules.explores);
}

// A job with a Set that holds no rank and is assumed to be as fast as the mean of the others; `ratio` is what it really is.
std::optional<LoopJob> with_an_empty_set(std::mt19937_64& random, const LoopShape& shape) {
  LoopJob job = random_loop_job(random, shape);
  std::set<std::uint32_t> held;
  for (const Rank& rank : job.start.ranks) held.insert(job.set_of(rank.processor).value);
  for (std::uint32_t j = 0; j < job.start.platform.sets.size(); ++j) {
    if (held.contains(j)) continue;
    double sum = 0, sets = 0;
    for (const std::uint32_t k : held) {
      const auto p = std::ranges::find(job.start.platform.processors, SetId{k}, &Processor::set);
      sum += p->cpu, ++sets;
    }
    for (Processor& p : job.start.platform.processors)
      if (p.set.value == j) p.cpu = sum / sets;
    job.start.platform.sets[j].untried = true;
    return job;
  }
  return std::nullopt;
}

// As before there was exploring: an untried Set that is assumed to be no gain stays empty.
Result<Plan> plan_without_exploring(const Snapshot& snapshot, const Window& window, const Params& params) {
  Result<Plan> plan = make_plan(snapshot, window, params);
  if (!plan || !plan->rules.explores) return plan;
  Snapshot told = snapshot;
  for (Set& set : told.platform.sets) set.untried = false;
  return make_plan(told, window, params);
}

TEST(Explore, OverRandomPlatforms) {
  constexpr int kWorlds = 60;
  for (const bool given : {false, true}) {
    std::mt19937_64 random(kExploreSeed);
    double with = 0, without = 0, worst = 1, worst_without = 1;
    std::size_t explored = 0;
    int worse = 0, worlds = 0;
    while (worlds < kWorlds) {
      std::optional<LoopJob> job =
          with_an_empty_set(random, {.least_ranks = 4, .most_ranks = 24, .least_steps = 400, .most_steps = 2000});
      if (!job) continue;
      ++worlds;
      const double ratio = 0.5 * std::pow(8.0, std::uniform_real_distribution(0.0, 1.0)(random));
      std::set<std::uint32_t> untried;
      for (std::uint32_t j = 0; j < job->start.platform.sets.size(); ++j)
        if (job->start.platform.sets[j].untried) untried.insert(j);
      job->pace = [&](std::uint64_t, std::uint32_t p) { return untried.contains(job->set_of({p}).value) ? ratio : 1; };
      const Params params = with_length(*job, given);
      const auto seed = kExploreSeed + static_cast<std::uint64_t>(worlds);
      Plans plans;
      const LoopRun run = run_loop(*job, params, 0.02, seed, plans.planner(), measuring(*job, ratio));
      const LoopRun before = run_loop(*job, params, 0.02, seed, plan_without_exploring, measuring(*job, ratio));
      const double still = job->seconds_without_moves();
      EXPECT_LE(explorations(plans), 1u) << worlds;
      EXPECT_EQ(run.returns, 0u) << worlds;
      explored += explorations(plans);
      with += std::log(run.makespan / still), without += std::log(before.makespan / still);
      worst = std::min(worst, 1 - run.makespan / still),
      worst_without = std::min(worst_without, 1 - before.makespan / still);
      worse += run.makespan > 1.01 * still;
    }
    std::printf(
        "length %s: %d worlds, %zu explored: gain %.1f %% (worst %.1f), without exploring %.1f %% (worst %.1f)\n",
        given ? "given" : "unknown", kWorlds, explored, 100 * (1 - std::exp(with / kWorlds)), 100 * worst,
        100 * (1 - std::exp(without / kWorlds)), 100 * worst_without);
    EXPECT_EQ(worse, 0) << given;
    EXPECT_LT(with, without) << given;
    EXPECT_GE(explored, 10u) << given;
  }
}

}  // namespace
}  // namespace bsp::decide
