// A Set of whose speed nothing is known is tried with one rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>

#include "operator/decide/auto/auto.h"
#include "operator/decide/auto/take_back.h"
#include "operator/decide/explain.h"
#include "operator/decide/make_plan.h"
#include "tests/unit/decide/random_job.h"
#include "tests/unit/decide/untried_job.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kUntriedSeed = 20261125;

TEST(Untried, ASlowerSetGetsOneRankAndTheRankReturns) {
  LoopJob job = beside_an_untried_set();
  Plans plans;
  const LoopRun run = run_with_truth(job, 0.25, plans);
  ASSERT_THAT(plans.all, SizeIs(2));
  EXPECT_TRUE(plans.all[0].rules.tries);
  EXPECT_THAT(moved_ranks(plans.all[0]), ElementsAre(2u)) << "the one with least work, as each gains the same";
  EXPECT_TRUE(plans.all[1].rules.takes_back);
  EXPECT_EQ(run.taken_back, 1u);
  EXPECT_EQ(run.on, std::vector<ProcessorId>({{0}, {1}, {2}, {3}}));
  EXPECT_EQ(run.moved_at[1] - run.moved_at[0], TakeBack::kMeasured);

  job.start.platform.sets[1].untried = false;
  Plans without;
  run_with_truth(job, 0.25, without);
  ASSERT_FALSE(without.all.empty());
  EXPECT_THAT(without.all[0].moves, SizeIs(4)) << "what the rule prevents";
}

TEST(Untried, AFasterSetGetsOneRankFirstAndSoonTheOthers) {
  LoopJob job = beside_an_untried_set(), known = job;
  Plans plans;
  const LoopRun run = run_with_truth(job, 1, plans);
  ASSERT_THAT(plans.all, SizeIs(2));
  EXPECT_TRUE(plans.all[0].rules.tries && !plans.all[1].rules.tries);
  EXPECT_THAT(plans.all[0].moves, SizeIs(1));
  EXPECT_THAT(plans.all[1].moves, SizeIs(3));
  EXPECT_EQ(run.moved_at[1] - run.moved_at[0], TakeBack::kMeasured) << "the delay";
  known.start.platform.sets[1].untried = false;
  const LoopRun at_once = run_loop(known, auto_params(), 0.02, 1);
  EXPECT_EQ(run.moved_at[0], at_once.moved_at[0]);
  // One pause more, and what the others gain in the supersteps of the trial.
  EXPECT_LE(run.makespan - at_once.makespan, 0.6 + 4 * 1.01 * (2 - 1));
}

// A rank that is in everybody's way goes first: the trial gains something, too.
TEST(Untried, TheMostProfitableRankTries) {
  LoopJob job = beside_an_untried_set();
  job.work[3] = 1.9e9;
  Plans plans;
  run_with_truth(job, 1, plans);
  ASSERT_FALSE(plans.all.empty());
  EXPECT_TRUE(plans.all[0].rules.tries);
  EXPECT_THAT(moved_ranks(plans.all[0]), ElementsAre(3u));
}

TEST(Untried, SaysItInPlainWords) {
  World w({{.name = "slow", .processors = 3, .cpu = 0.5e9, .slots = 1}, {.name = "new", .processors = 3, .slots = 1}},
          {0, 1, 2});
  w.snapshot.platform.sets[1].untried = true;
  const Plan plan = w.plan(auto_params()).value();
  EXPECT_THAT(headline(plan, w.snapshot), HasSubstr("tries new, of whose speed nothing is known, with rank 0"));
  EXPECT_EQ(describe(stay_of(plan, 1), plan, w.snapshot),
            "TriedFirst: rank 0 tries new first, as nothing is known of its speed");
  EXPECT_EQ(plan.next.alpha, TakeBack::kMeasured);
  EXPECT_GT(plan.next.wave.before, 0) << "it will be judged";
}

// Windows of one superstep can't be compared: one of four comes first.
TEST(Untried, WaitsForAWindowThatTheTrialCanBeJudgedBy) {
  LoopJob job = beside_an_untried_set();
  Params params = auto_params();
  params.alpha0 = 1, params.first_alpha = 0, params.early_calls = false;
  Plans plans;
  const LoopRun run = run_with_truth(job, 0.25, plans, params);
  ASSERT_THAT(plans.all, SizeIs(2));
  EXPECT_TRUE(plans.all[0].rules.tries && plans.all[1].rules.takes_back);
  EXPECT_GE(run.moved_at[0], TakeBack::kMeasured);
  EXPECT_LE(run.moved_at[0], 4 * TakeBack::kMeasured);
}

TEST(Untried, IsNotTriedIfTheTrialCostsMoreThanAllGain) {
  Params params = auto_params();
  params.expected_supersteps = 16;  // 12 are left: the others would gain 12 s, and two pauses cost 16 s
  LoopJob job = beside_an_untried_set(8);
  job.supersteps = 16;
  Plans plans;
  run_with_truth(job, 1, plans, params);
  EXPECT_THAT(plans.all, IsEmpty());
  job.start.platform.sets[1].untried = false;
  run_with_truth(job, 1, plans, params);
  EXPECT_THAT(plans.all, SizeIs(1)) << "one pause is worth it";
}

// Over random jobs and all heuristics: never two ranks at once, never beside other moves; every rank that would have moved has
// a reason; whatever moves at all moves a rank that would have moved.
TEST(Untried, NoPlanMovesMoreThanOneRankThere) {
  std::mt19937_64 random(kUntriedSeed);
  std::size_t trials = 0;
  for (int n = 0; n < 1500; ++n) {
    const auto heuristic = static_cast<Heuristic>(n % 7);
    OneSuperstep job(random, {.ranks = 2 + static_cast<std::uint32_t>(random() % 10), .processors = 8, .sets = 3},
                     heuristic);
    std::set<SetId> held;
    for (std::uint32_t i = 0; i < job.snapshot.ranks.size(); ++i) held.insert(job.snapshot.set({i}));
    const Plan before = make_plan(job.snapshot, job.window(5), job.params).value();
    for (std::uint32_t j = 0; j < 3; ++j) job.snapshot.platform.sets[j].untried = !held.contains(SetId{j});
    const Plan plan = make_plan(job.snapshot, job.window(5), job.params).value();
    const auto untried = [&](const Move& move) { return job.snapshot.platform.sets[move.to_set.value].untried; };
    if (std::ranges::none_of(before.moves, untried)) {
      EXPECT_EQ(moved_ranks(plan), moved_ranks(before)) << n;
      EXPECT_FALSE(plan.rules.tries) << n;
      continue;
    }
    ASSERT_LE(plan.moves.size(), 1u) << n;
    if (plan.moves.empty()) continue;
    ++trials;
    EXPECT_TRUE(plan.rules.tries && untried(plan.moves[0])) << n;
    EXPECT_THAT(moved_ranks(before), ::testing::Contains(plan.moves[0].rank.value)) << n;
    EXPECT_LE(plan.objective.after, plan.objective.before) << n;
    for (const Stay& stay : plan.stays) {
      const auto was = std::ranges::find(before.moves, stay.rank, &Move::rank);
      if (was == before.moves.end()) continue;
      EXPECT_EQ(stay.reason, Reason::kTriedFirst) << n;
      EXPECT_EQ(stay.target, was->to_set) << n;
    }
  }
  std::printf("%zu trials in 1500 jobs\n", trials);
  EXPECT_GE(trials, 100u);
}

// Whatever the truth: a run with a wrong assumption pays the trial, and no more.
TEST(Untried, AWrongAssumptionCostsATrialAndNoMore) {
  std::mt19937_64 random(kUntriedSeed);
  std::size_t tried = 0;
  for (int n = 0; n < 40; ++n) {
    LoopJob job = random_loop_job(random, {.least_ranks = 4, .most_ranks = 16, .least_steps = 300, .most_steps = 600});
    std::set<SetId> held;
    for (const Rank& rank : job.start.ranks) held.insert(job.set_of(rank.processor));
    const double factor = std::uniform_real_distribution(0.2, 1.5)(random);
    std::vector<double> real(job.start.platform.processors.size(), 1);
    for (std::uint32_t p = 0; p < real.size(); ++p)
      if (!held.contains(job.set_of({p}))) {
        job.start.platform.sets[job.set_of({p}).value].untried = true;
        real[p] = factor;
      }
    job.pace = [&](std::uint64_t, std::uint32_t p) { return real[p]; };
    Plans plans;
    const double still = job.seconds_without_moves();
    const LoopRun run = run_loop(job, auto_params(), 0.02, kUntriedSeed + static_cast<std::uint64_t>(n),
                                 plans.planner(), measuring(job, factor));
    EXPECT_LE(run.makespan, still * 1.02) << n << ", " << factor;
    EXPECT_EQ(run.returns, 0u) << n;
    std::set<SetId> known = held;
    for (const Plan& plan : plans.all)
      for (const Move& move : plan.moves) {
        if (known.contains(move.to_set)) continue;
        ++tried;
        EXPECT_THAT(plan.moves, SizeIs(1)) << n;
        known.insert(move.to_set);
      }
  }
  std::printf("%zu Sets tried\n", tried);
  EXPECT_GE(tried, 10u);
}

}  // namespace
}  // namespace bsp::decide
