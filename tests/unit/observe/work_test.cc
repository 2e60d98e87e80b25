// A unit of work where the CPUs count no instructions: over whole runs, with the decision in the loop.
#include "operator/observe/work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "operator/decide/make_plan.h"
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

// Of Sets with these times for a unit of each kind, ns.
Benchmarks benchmarks_of(const std::map<std::string, std::uint64_t>& sets) {
  std::map<std::string, wire::CpuBenchmark> said;
  std::vector<PodBenchmark> pods;
  for (const auto& [set, ns] : sets) {
    said[set] = {.model = "m", .integer_ns = ns, .floating_ns = ns, .memory_ns = ns};
    pods.push_back({set, set, &said[set]});
  }
  Benchmarks b;
  b.update(pods);
  return b;
}

TEST(Work, ABenchmarkSaysWhatCpuTimeIsWorthBeforeAnyRankMoves) {
  const Benchmarks b = benchmarks_of({{"a", 300'000}, {"b", 150'000}, {"idle", 100'000}});
  const Strings sets{"a", "a", "a", "b", "b"};
  Work work;
  work.settle(sets, b);
  EXPECT_TRUE(work.to_json().empty()) << "its unit isn't known yet";
  work.set_unit(WorkUnit::kCpuTime);
  const auto changed = work.settle(sets, b);
  EXPECT_EQ(work.factor("a"), 1);
  EXPECT_NEAR(work.factor("b"), 2, 1e-9);
  EXPECT_NEAR(work.factor("idle"), 3, 1e-9) << "for when the first rank comes";
  EXPECT_NEAR(changed.at("b"), 2, 1e-9);
  for (const char* set : {"a", "b", "idle"}) {
    EXPECT_TRUE(work.calibrated(set)) << set;
    EXPECT_FALSE(work.confirmed(set)) << set;
  }
  EXPECT_FALSE(work.guesses());
  EXPECT_TRUE(work.settle(sets, b).empty()) << "nothing new";
  Work again = Work::from_json(work.to_json());
  again.set_unit(WorkUnit::kCpuTime);
  EXPECT_EQ(again.factor("b"), work.factor("b"));
  EXPECT_TRUE(again.settle(sets, b).empty()) << "a restart changes no unit";
  Work counted;
  counted.set_unit(WorkUnit::kInstructions);
  counted.settle(sets, b);
  EXPECT_EQ(counted.factor("b"), 1);
  EXPECT_FALSE(counted.calibrated("b"));
}

TEST(Work, ABenchmarkOfOnlyOneSetComparesNothing) {
  Work work;
  work.set_unit(WorkUnit::kCpuTime);
  work.settle({"a", "a", "b"}, benchmarks_of({{"b", 100'000}}));
  EXPECT_EQ(work.factor("b"), 1);
  EXPECT_FALSE(work.calibrated("b"));
}

TEST(Work, WhatABenchmarkCannotTellApartIsEqual) {
  Work work;
  work.set_unit(WorkUnit::kCpuTime);
  work.settle({"a", "a", "b"}, benchmarks_of({{"a", 105'000}, {"b", 100'000}}));
  EXPECT_EQ(work.factor("b"), 1);
  EXPECT_TRUE(work.calibrated("b"));
}

// Equal means are more precise where ranks are alike, and mislead where they are not.
TEST(Work, EqualMeansCorrectABenchmarkThatTheyAgreeWith) {
  const Strings sets{"a", "a", "a", "b", "b", "b"};
  const Benchmarks b = benchmarks_of({{"a", 100'000}, {"b", 55'000}});
  const auto factor_of = [&](double b_times) {
    Work work;
    work.set_unit(WorkUnit::kCpuTime);
    for (int t = 0; t < 5; ++t)
      work.add(std::vector<double>{1e9, 1.02e9, 0.98e9, b_times, b_times * 1.02, b_times * 0.98}, sets);
    work.settle(sets, b);
    EXPECT_FALSE(work.guesses());
    return work.factor("b");
  };
  EXPECT_NEAR(factor_of(0.5e9), 2, 0.05) << "the means say 2, the benchmark 1.82";
  EXPECT_NEAR(factor_of(2e9), 1 / 0.55, 1e-9) << "four times as much CPU time there is more work";
}

TEST(Work, ARankThatMovedOverrulesTheBenchmark) {
  const Benchmarks b = benchmarks_of({{"new", 100'000}, {"newest", 50'000}, {"old", 200'000}});
  Work work;
  work.set_unit(WorkUnit::kCpuTime);
  const Strings before{"old", "old", "old", "new"}, after{"new", "old", "old", "new"};
  work.settle(before, b);
  EXPECT_NEAR(work.factor("new"), 2, 1e-9);
  for (int t = 0; t < 5; ++t) work.add(std::vector<double>{3e9, 3e9, 3e9, 1e9}, before);
  for (int t = 0; t < 5; ++t) work.add(std::vector<double>{1e9, 3e9, 3e9, 1e9}, after);
  work.settle(after, b);
  EXPECT_NEAR(work.factor("new") / work.factor("old"), 3, 1e-9);
  EXPECT_TRUE(work.confirmed("new"));
  // 4 times as fast as old and twice as new by the benchmark, which two Sets relate to what moves have shown.
  EXPECT_NEAR(work.factor("newest") / work.factor("old"), std::sqrt(4 * 2 * 3), 1e-9);
  EXPECT_FALSE(work.confirmed("newest"));
  EXPECT_TRUE(work.calibrated("newest"));
}

TEST(Work, TheBenchmarkKeepsWhatMovesHaveShownElsewhere) {
  const Benchmarks b = benchmarks_of({{"a", 100'000}, {"c", 50'000}});
  Work work;
  work.set_unit(WorkUnit::kCpuTime);
  const Strings before{"a", "a", "a", "a", "c", "d"}, after{"a", "a", "a", "a", "d", "d"};
  for (int t = 0; t < 5; ++t) work.add(std::vector<double>{1e9, 1e9, 1e9, 1e9, 1e9, 1e9}, before);
  for (int t = 0; t < 5; ++t) work.add(std::vector<double>{1e9, 1e9, 1e9, 1e9, 2e9, 1e9}, after);
  work.settle(after, b);
  EXPECT_NEAR(work.factor("d") / work.factor("c"), 0.5, 1e-9);
  EXPECT_NEAR(work.factor("c") / work.factor("a"), 2, 0.2);
}

TEST(Work, WhatIsStoredWrongIsIgnored) {
  for (const char* stored :
       {"null", "{}", "3", R"([["a"], ["a", -1], ["a", 0], ["a", null], ["a", "b"], [1, 2], ["a", "b", 0, 1]])",
        R"([["a", "b", 1, -1], ["a", "b", "c", 1], [[], 2], 7])"}) {
    Work work = Work::from_json(nlohmann::json::parse(stored));
    work.set_unit(WorkUnit::kCpuTime);
    EXPECT_EQ(work.factor("a"), 1) << stored;
    EXPECT_TRUE(work.to_json().empty()) << stored;
  }
}

// What the decision knows of the CPUs in a run.
struct Knows {
  bool counted = false;  // instructions, and not only CPU time
  bool infers = true;
  // By Set, how far the benchmark's speed is off for this program. Empty: there is no benchmark.
  std::vector<double> benchmark_off = {};
};

// The operator's way from reports to what is decided.
decide::LoopRun run_timed(const decide::LoopJob& job, const Knows& knows, std::uint64_t seed) {
  const bool counted = knows.counted;
  const decide::Platform& truth = job.start.platform;
  Strings names;
  std::vector<NodeFacts> facts;
  for (const decide::Set& set : truth.sets) names.push_back(set.name);
  for (const decide::Processor& p : truth.processors)
    facts.push_back({.name = p.name, .set = names[p.set.value], .slots = p.slots});
  Calibration calibration;
  Benchmarks benchmarks;
  Work work;
  std::map<std::uint32_t, wire::CpuBenchmark> of_node;
  work.set_unit(counted ? WorkUnit::kInstructions : WorkUnit::kCpuTime);
  Strings sets, nodes;
  bool begins = true;  // a window
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
    if (!knows.benchmark_off.empty()) {
      for (const ProcessorId p : on) {
        const decide::Processor& node = truth.processor(p);
        const auto ns =
            static_cast<std::uint64_t>(150e12 * node.slots / (node.cpu * knows.benchmark_off[node.set.value]));
        of_node[p.value] = {.model = "", .integer_ns = ns, .floating_ns = ns, .memory_ns = ns};
      }
      std::vector<PodBenchmark> pods;
      for (const auto& [p, cpu] : of_node) pods.push_back({facts[p].set, facts[p].name, &cpu});
      benchmarks.update(pods);
    }
    if (begins && knows.infers)
      for (const auto& [set, ratio] : work.settle(sets, benchmarks)) calibration.rescale(set, ratio);
    begins = false;
    work.add(seen.instructions, sets);
    for (std::size_t i = 0; i < on.size(); ++i) seen.instructions[i] *= work.factor(sets[i]);
    const SuperstepTimes times{.superstep = seen.superstep.value,
                               .seconds = 0,
                               .imbalance = 0,
                               .compute_seconds = seen.compute_seconds,
                               .instructions = seen.instructions};
    calibration.add_superstep(times, sets, nodes);
    known.platform = make_platform(names, facts, calibration, benchmarks.relative_to(sets[0]));
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
    params.timed_work = !counted && benchmarks.speeds().empty();
    begins = true;
    return decide::make_plan(now, window, params);
  };
  const decide::Params params{.heuristic = decide::Heuristic::kAuto, .early_calls = true};
  return run_loop(job, params, 0.02, seed, planner, view);
}

// What is gained over many platforms, whose ranks' work differs by up to `uneven`. The benchmark is off by up to ±20 % for the
// program.
void compare_ways(double uneven) {
  std::mt19937_64 random(kWorkSeed), off(kWorkSeed);
  struct Way {
    const char* name;
    double log_sum = 0, worst = 0;
    [[nodiscard]] double gain() const { return 1 - std::exp(log_sum); }
  } blind{"by CPU time alone"}, guessed{"inferred"}, calibrated{"calibrated"}, counted{"counted"};
  constexpr int kWorlds = 30;
  for (std::uint64_t w = 0; w < kWorlds; ++w) {
    decide::LoopJob job = decide::random_loop_job(random, {.least_steps = 400, .most_steps = 1000, .crowded = false});
    double mean = 0;
    for (const double I : job.work) mean += I / static_cast<double>(job.work.size());
    for (double& I : job.work) I = mean * std::uniform_real_distribution(1 - uneven, 1 + uneven)(random);
    std::vector<ProcessorId> on;
    for (const decide::Rank& rank : job.start.ranks) on.push_back(rank.processor);
    std::vector<double> benchmark_off;
    for (std::size_t j = 0; j < job.start.platform.sets.size(); ++j)
      benchmark_off.push_back(std::uniform_real_distribution(0.8, 1.2)(off));
    const double still = static_cast<double>(job.supersteps) * job.superstep_seconds(on);
    const auto add = [&](Way& way, const Knows& knows) {
      const double ratio = run_timed(job, knows, kWorkSeed + w).makespan / still;
      way.log_sum += std::log(ratio) / kWorlds;
      way.worst = std::max(way.worst, ratio);
    };
    add(blind, {.infers = false});
    add(guessed, {});
    add(calibrated, {.benchmark_off = benchmark_off});
    add(counted, {.counted = true});
  }
  std::printf("work within %.0f %%, gain (worst):", uneven * 100);
  for (const Way* way : {&blind, &guessed, &calibrated, &counted})
    std::printf(" %s %.1f %% (%+.1f %%)", way->name, 100 * way->gain(), 100 * (way->worst - 1));
  std::printf("\n");
  EXPECT_GE(guessed.gain(), 0.6 * counted.gain());
  EXPECT_LE(guessed.worst, 1.06) << "a guess that was wrong";
  EXPECT_GE(calibrated.gain(), 0.9 * counted.gain());
  EXPECT_LE(calibrated.worst, 1.02);
}

TEST(Work, WithoutCountersMostOfTheGainIsFound) { compare_ways(0.05); }
TEST(Work, WithoutCountersMostOfTheGainIsFoundOfUnevenRanks) { compare_ways(0.6); }

}  // namespace
}  // namespace bsp::observe
