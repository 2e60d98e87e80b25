// A unit of work where the CPUs count no instructions: over whole runs, with the decision in the loop.
#include "operator/observe/work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "operator/observe/snapshot.h"
#include "tests/bench/closed_loop.h"

namespace bsp::observe {
namespace {

constexpr std::uint64_t kWorkSeed = 20261123;

using Strings = std::vector<std::string>;

TEST(Work, IsCountedOrTimedOrNeither) {
  EXPECT_EQ(unit_of(0, 0), WorkUnit::kUnknown);
  EXPECT_EQ(unit_of(4, 4), WorkUnit::kInstructions);
  EXPECT_EQ(unit_of(0, 4), WorkUnit::kCpuTime);
  EXPECT_EQ(unit_of(1, 4), WorkUnit::kMixed);
}

TEST(Work, ARankThatMovedShowsWhatCpuTimeIsWorth) {
  Work work;
  work.set_unit(WorkUnit::kCpuTime);
  const std::vector<double> before{4e9, 1e9, 3e9, 2e9},
      after{2e9, 1.5e9, 4.5e9, 3e9};  // all got half as much more to do
  for (int t = 0; t < 5; ++t) work.add(before, {"old", "old", "new", "new"});
  for (int t = 0; t < 5; ++t) work.add(after, {"new", "old", "new", "new"});
  const auto changed = work.settle({"new", "old", "new", "new"});
  EXPECT_DOUBLE_EQ(work.factor("old") / work.factor("new"), 1 / 3.0) << "4 · 1.5 / 2 times the time in the old Set";
  EXPECT_TRUE(work.confirmed("old"));
  EXPECT_TRUE(work.confirmed("new"));
  EXPECT_FALSE(work.guesses());
  EXPECT_FALSE(changed.empty());
  Work again = Work::from_json(work.to_json());
  again.set_unit(WorkUnit::kCpuTime);
  again.add(after, {"new", "old", "new", "new"});
  again.settle({"new", "old", "new", "new"});
  EXPECT_DOUBLE_EQ(again.factor("old"), work.factor("old"));
}

TEST(Work, EvenRanksAreAGuessAndUnevenOnesAreNone) {
  const Strings sets{"a", "a", "a", "b", "b", "b"};
  Work work;
  work.set_unit(WorkUnit::kCpuTime);
  for (int t = 0; t < 5; ++t) work.add(std::vector<double>{1e9, 1.02e9, 0.98e9, 2e9, 2.04e9, 1.96e9}, sets);
  work.settle(sets);
  EXPECT_NEAR(work.factor("b") / work.factor("a"), 0.5, 1e-9);
  EXPECT_TRUE(work.guesses());
  Work uneven;
  uneven.set_unit(WorkUnit::kCpuTime);
  for (int t = 0; t < 5; ++t) uneven.add(std::vector<double>{1e9, 2e9, 0.4e9, 2e9, 0.5e9, 1.6e9}, sets);
  uneven.settle(sets);
  EXPECT_EQ(uneven.factor("b"), uneven.factor("a"));
  Work counted;
  counted.set_unit(WorkUnit::kInstructions);
  for (int t = 0; t < 5; ++t) counted.add(std::vector<double>{1e9, 1e9, 1e9, 2e9, 2e9, 2e9}, sets);
  counted.settle(sets);
  EXPECT_EQ(counted.factor("b"), 1) << "that is twice the work";
}

// The operator's way from reports to what is decided, with CPU time for instructions unless `counted`.
decide::LoopRun run_timed(const decide::LoopJob& job, bool counted, bool infer, std::uint64_t seed) {
  const decide::Platform& truth = job.start.platform;
  Strings names;
  std::vector<NodeFacts> facts;
  for (const decide::Set& set : truth.sets) names.push_back(set.name);
  for (const decide::Processor& p : truth.processors)
    facts.push_back({.name = p.name, .set = names[p.set.value], .slots = p.slots});
  Calibration calibration;
  Work work;
  work.set_unit(counted ? WorkUnit::kInstructions : WorkUnit::kCpuTime);
  Strings sets, nodes;
  const decide::LoopView view = [&](decide::MeasuredSuperstep& seen, const std::vector<ProcessorId>& on,
                                    decide::Snapshot& known) {
    sets.clear(), nodes.clear();
    for (const ProcessorId p : on) {
      sets.push_back(facts[p.value].set);
      nodes.push_back(facts[p.value].name);
    }
    if (!counted)
      for (std::size_t i = 0; i < on.size(); ++i) {
        const decide::Processor& p = truth.processor(on[i]);
        seen.instructions[i] *= 1e9 * p.slots / p.cpu;
      }
    work.add(seen.instructions, sets);
    for (std::size_t i = 0; i < on.size(); ++i) seen.instructions[i] *= work.factor(sets[i]);
    const SuperstepTimes times{.superstep = seen.superstep.value,
                               .seconds = 0,
                               .imbalance = 0,
                               .compute_seconds = seen.compute_seconds,
                               .instructions = seen.instructions};
    calibration.add_superstep(times, sets, nodes);
    known.platform = make_platform(names, facts, calibration);
    known.platform.T = truth.T;
    known.platform.Mig = truth.Mig;
  };
  const decide::LoopPlanner planner = [&](const decide::Snapshot& snapshot, const decide::Window& window,
                                          decide::Params params) {
    if (work.guesses()) params.max_moves = 1;
    decide::Snapshot now = snapshot;
    for (decide::Rank& rank : now.ranks)  // as the operator learns from RankMigration.status.realisedGainSeconds
      std::erase_if(rank.left,
                    [&](ProcessorId p) { return truth.processor(p).cpu > truth.processor(rank.processor).cpu; });
    auto plan = decide::make_plan(now, window, params);
    if (infer)
      for (const auto& [set, ratio] : work.settle(sets)) calibration.rescale(set, ratio);
    return plan;
  };
  const decide::Params params{.heuristic = decide::Heuristic::kAuto, .early_calls = true};
  return run_loop(job, params, 0.02, seed, planner, view);
}

// Symmetric ranks as in most programs (±5 %), and uneven ones.
TEST(Work, WithoutCountersMostOfTheGainIsFound) {
  for (const double uneven : {0.05, 0.6}) {
    std::mt19937_64 random(kWorkSeed);
    double timed = 0, counted = 0, blind = 0, worst = 0;
    constexpr int kWorlds = 30;
    for (std::uint64_t w = 0; w < kWorlds; ++w) {
      decide::LoopJob job = decide::random_loop_job(random, {.least_steps = 400, .most_steps = 1000});
      double mean = 0;
      for (const double I : job.work) mean += I / static_cast<double>(job.work.size());
      for (double& I : job.work) I = mean * std::uniform_real_distribution(1 - uneven, 1 + uneven)(random);
      std::vector<ProcessorId> on;
      for (const decide::Rank& rank : job.start.ranks) on.push_back(rank.processor);
      const double still = static_cast<double>(job.supersteps) * job.superstep_seconds(on);
      const auto ratio = [&](bool c, bool infer) { return run_timed(job, c, infer, kWorkSeed + w).makespan / still; };
      timed += std::log(ratio(false, true)) / kWorlds;
      counted += std::log(ratio(true, true)) / kWorlds;
      blind += std::log(ratio(false, false)) / kWorlds;
      worst = std::max(worst, ratio(false, true));
    }
    std::printf(
        "work within %.0f %%: gain %.1f %% by CPU time alone, %.1f %% inferred (worst %+.1f %%), %.1f %% counted\n",
        uneven * 100, 100 * (1 - std::exp(blind)), 100 * (1 - std::exp(timed)), 100 * (worst - 1),
        100 * (1 - std::exp(counted)));
    EXPECT_GE(1 - std::exp(timed), 0.6 * (1 - std::exp(counted)));
    EXPECT_LE(worst, 1.06) << "a guess that was wrong";
  }
}

}  // namespace
}  // namespace bsp::observe
