// Whole runs: the supersteps of calls, the costs of calls and migrations, and the differences ii − i and i − iii.
#include <gmock/gmock.h>

#include "operator/decide/auto/auto.h"
#include "operator/decide/make_plan.h"
#include "operator/record/replay.h"
#include "sim/heard.h"
#include "sim/scenario.h"
#include "tests/sim/engine_fixture.h"

namespace bsp::sim::test {
namespace {

using testing::DoubleNear;

constexpr double kOverRun = 1e-6;  // s, sums over many supersteps

std::vector<std::uint64_t> call_supersteps(const Outcome& outcome) {
  std::vector<std::uint64_t> out;
  for (const Call& call : outcome.calls) out.push_back(call.superstep.value);
  return out;
}

// Two ranks on slow nodes that compute as much as the two on fast ones; two fast nodes are free.
struct SlowAndFast {
  SlowAndFast() {
    platform = two_sets();
    for (int i = 2; i < 4; ++i) platform.sets[1].nodes.push_back({.name = "b" + std::to_string(i), .speed = 2e9});
    platform.mig_seconds = 0.25;
    platform.call = {.points = {{4, 0.5}}};
    platform.barrier = {.constant = 0.01, .per_outsider = 0.002};
  }
  Platform platform;
  Script workload{{{.instructions = {1e9, 1e9, 1e9, 1e9},
                    .messages = {message(0, 1, 1e5), message(1, 2, 1e5), message(2, 3, 1e5)}}},
                  40};
  Scenario scenario{.platform = platform,
                    .workload = workload,
                    .mapping = on({0, 1, 2, 3}),
                    .params = {.heuristic = decide::Heuristic::kAutoMig, .alpha0 = 4, .d0 = 0.25}};
};

TEST(Scenario, BalancedRanksAreCalledAtTheKnownSupersteps) {
  const Platform platform = two_sets();
  const Script workload({{.instructions = {1e9, 1e9}}}, 200);
  for (const auto& [alpha0, expected] :
       {std::pair<std::uint64_t, std::vector<std::uint64_t>>{2, {2, 6, 14, 30, 62, 126}},
        {4, {4, 12, 28, 60, 124}},
        {8, {8, 24, 56, 120}},
        {16, {16, 48, 112}}}) {
    const auto outcome = simulate({.platform = platform,
                                   .workload = workload,
                                   .mapping = on({0, 1}),
                                   .params = {.heuristic = decide::Heuristic::kTop, .alpha0 = alpha0, .omega = 100},
                                   .mode = Mode::kDeciding});
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(call_supersteps(*outcome), expected) << "alpha0 = " << alpha0;
    EXPECT_EQ(outcome->simulated, 1u);
    EXPECT_NEAR(outcome->makespan, 200, kOverRun);
  }
}

// Rank 3 hears from 2 in every superstep and from 0 in every second one.
TEST(Scenario, CallsKnowWhomRanksHearFrom) {
  const Platform platform = two_sets();
  const Script workload(
      {{.instructions = {1e9, 1e9, 1e9, 1e9}, .messages = {message(2, 3, 3000)}},
       {.instructions = {1e9, 1e9, 1e9, 1e9}, .messages = {message(0, 3, 1000), message(2, 3, 3000)}}},
      64);
  const auto outcome = simulate({.platform = platform,
                                 .workload = workload,
                                 .mapping = on({0, 1, 2, 3}),
                                 .params = {.heuristic = decide::Heuristic::kTop, .alpha0 = 8},
                                 .mode = Mode::kDeciding});
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_FALSE(outcome->calls.empty());
  for (const Call& call : outcome->calls) {
    EXPECT_TRUE(call.snapshot.ranks[0].partners.empty());
    const std::vector<decide::Partner>& heard = call.snapshot.ranks[3].partners;
    ASSERT_EQ(heard.size(), 2u);
    EXPECT_EQ(heard[0].rank, RankId{2});
    EXPECT_NEAR(heard[0].bytes, 3000, 1);
    EXPECT_EQ(heard[1].rank, RankId{0});
    EXPECT_NEAR(heard[1].bytes, 500, 250) << "a mean, in which the last superstep counts most";
  }
}

TEST(Scenario, OnlyTheHeaviestPartnersAreNamed) {
  HeardOf heard(20, 2);
  Demand demand{.instructions = std::vector<double>(20, 1)};
  for (std::uint32_t from = 1; from < 20; ++from) demand.messages.push_back(message(from, 0, 100.0 * (from / 2)));
  demand.messages.erase(demand.messages.begin());  // of rank 1: 0 bytes
  std::vector<decide::Rank> ranks(20);
  heard.add(demand, 0.1);
  heard.report(ranks);
  ASSERT_EQ(ranks[0].partners.size(), decide::kMostPartners);
  EXPECT_EQ(ranks[0].partners[0], (decide::Partner{.rank = {18}, .bytes = 900})) << "of equals the lower rank";
  EXPECT_EQ(ranks[0].partners[1], (decide::Partner{.rank = {19}, .bytes = 900}));
  EXPECT_EQ(ranks[0].partners[15].rank, RankId{5});

  demand.messages = {message(7, 0, 5000)};
  heard.add(demand, 0.2);   // superstep 2: (300 / 2 + 5000) / 1.5
  heard.add(demand, 0.25);  // 3: not sampled
  heard.report(ranks);
  EXPECT_EQ(ranks[0].partners[0], (decide::Partner{.rank = {7}, .bytes = 3433}));
  heard.begin_epoch();
  heard.add(demand, 0.3);  // 1 of the new epoch: (5150 / 2 + 10000) / 2.75
  heard.report(ranks);
  EXPECT_EQ(ranks[0].partners[0], (decide::Partner{.rank = {7}, .bytes = 4572}));
  heard.add(demand, 0.4);
  demand.messages = {message(8, 0, 1e6)};
  heard.add(demand, 0.5);
  heard.report(ranks);
  EXPECT_NE(ranks[0].partners[0].rank, RankId{8}) << "superstep 3, and the last sample is young";
  heard.add(demand, 1.45);
  heard.report(ranks);
  EXPECT_EQ(ranks[0].partners[0].rank, RankId{8});
  heard.add(demand, 1.5);  // 5
  HeardOf many(20'001, 1);
  many.add(demand, 2);
  many.report(ranks);
  EXPECT_EQ(ranks[0].partners[0].rank, RankId{8}) << "untouched: no decision uses them";
}

// Four pairs of ranks that talk, one of each in either Set. A byte takes as long for one of them as inside a Set, but the uplinks
// carry no more than that for all four.
TEST(Scenario, LinksThatRanksShareAreLearned) {
  Platform platform;
  for (const char* name : {"a", "b"}) {
    Set set{.name = name, .link = {.bandwidth = 100e6}, .uplink = {.bandwidth = 100e6}};
    for (int i = 0; i < 6; ++i) set.nodes.push_back({.name = name + std::to_string(i), .speed = 1e9, .slots = 1});
    platform.sets.push_back(set);
  }
  platform.mig_seconds = 0.1;
  Demand demand{.instructions = std::vector<double>(8, 1e9)};
  for (std::uint32_t i = 0; i < 8; ++i) demand.messages.push_back(message(i, i ^ 1, 20e6));
  const Script workload({demand}, 200);
  decide::Params params;
  decide::take_heuristic(params, decide::Heuristic::kAuto);
  Scenario scenario{
      .platform = platform, .workload = workload, .mapping = on({0, 6, 1, 7, 2, 8, 3, 9}), .params = params};
  const auto all = simulate_all(scenario);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_NEAR(all->alone.supersteps.front(), 1.8, 1e-3);
  EXPECT_NEAR(all->migrating.supersteps.back(), 1.2, 1e-3) << "no pair is apart";
  EXPECT_LT(all->migrating.makespan, 0.75 * all->alone.makespan);
  ASSERT_FALSE(all->migrating.calls.empty());
  const decide::Grid<double>& capacity = all->migrating.calls.front().snapshot.platform.capacity;
  ASSERT_FALSE(capacity.empty());
  EXPECT_NEAR((capacity[0, 1]), 100e6, 1e6);
  EXPECT_EQ((capacity[0, 0]), 0);

  scenario.planner = [](const decide::Snapshot& snapshot, const decide::Window& window, const decide::Params& p) {
    decide::Snapshot unseen = snapshot;
    unseen.platform.capacity = {};
    return decide::make_plan(unseen, window, p);
  };
  const auto unseen = simulate(scenario);
  ASSERT_TRUE(unseen) << unseen.error().message;
  EXPECT_TRUE(unseen->moves.empty());
}

// Where every message has a link to itself, none is learned.
TEST(Scenario, LinksThatNobodySharesAreNot) {
  Platform platform = two_sets();
  for (Set& set : platform.sets) set.link.shared = set.uplink.shared = false, set.link.latency = 0;
  const Script workload(
      {{.instructions = {1e9, 1e9, 1e9, 1e9}, .messages = {message(0, 2, 20e6), message(1, 3, 20e6)}}}, 40);
  const auto outcome = simulate({.platform = platform, .workload = workload, .mapping = on({0, 1, 2, 3})});
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_FALSE(outcome->calls.empty());
  for (const Call& call : outcome->calls) EXPECT_TRUE(call.snapshot.platform.capacity.empty());
}

TEST(Scenario, NoCallFollowsTheLastSuperstep) {
  const Platform platform = two_sets();
  // AutoMig's second call is due at superstep 12; Auto's at superstep 8, where it judges the wave of the first call.
  for (const auto& [heuristic, supersteps] :
       {std::pair{decide::Heuristic::kAutoMig, 12u}, {decide::Heuristic::kAuto, 8u}}) {
    for (const auto& [length, calls] : {std::pair{supersteps, 1u}, {supersteps + 1, 2u}}) {
      const Script workload({{.instructions = {1e9, 1e9}}}, length);
      const auto outcome = simulate({.platform = platform,
                                     .workload = workload,
                                     .mapping = on({0, 1}),
                                     .params = {.heuristic = heuristic, .alpha0 = 4}});
      ASSERT_TRUE(outcome) << outcome.error().message;
      EXPECT_EQ(outcome->calls.size(), calls) << crds::to_string(heuristic) << ", " << length << " supersteps";
    }
  }
}

TEST(Scenario, DecidingPaysForCallsAndMovesNothing) {
  SlowAndFast s;
  const auto all = simulate_all(s.scenario);
  ASSERT_TRUE(all) << all.error().message;
  // 1 s on a slow node; the last message that matters is rank 1's: 1e5 bytes at 50 MB/s after 2 ms. Two outsiders.
  const double superstep = 1 + 0.004 + 0.01 + 2 * 0.002;
  EXPECT_NEAR(all->alone.makespan, 40 * superstep, kOverRun);
  EXPECT_EQ(all->alone.messages, 120u);
  EXPECT_EQ(all->alone.calls_made, 0u);
  EXPECT_GT(all->deciding.calls_made, 1u);
  EXPECT_TRUE(all->deciding.moves.empty());
  EXPECT_FALSE(all->deciding.calls[0].plan.moves.empty());
  EXPECT_NEAR(all->deciding.makespan, all->alone.makespan + 0.5 * static_cast<double>(all->deciding.calls_made),
              kOverRun);
}

TEST(Scenario, MovesSlowRanksToFastNodesAndPaysOnce) {
  SlowAndFast s;
  const auto outcome = simulate(s.scenario);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->moves.size(), 2u);
  double longest = 0;
  for (const Moved& move : outcome->moves) {
    EXPECT_EQ(move.superstep.value, 4u);
    EXPECT_LT(move.from.value, 2u);
    EXPECT_GE(move.to.value, 4u);
  }
  for (const decide::Move& move : outcome->calls[0].plan.moves) longest = std::max(longest, move.cost);
  EXPECT_THAT(longest, DoubleNear(0.25 + 1e6 / 50e6, kOverRun));  // Mig and 1 MB over the uplink
  EXPECT_NEAR(outcome->migration_seconds, longest, kOverRun);
  // Before: as in ii. After: all ranks in b, half a second, messages inside b, no rank outside the Set of rank 0.
  EXPECT_NEAR(outcome->supersteps[3], 1.018, kOverRun);
  EXPECT_NEAR(outcome->supersteps[4], 0.5 + 0.003 + 0.01, kOverRun);
  double sum = outcome->call_seconds + outcome->migration_seconds;
  for (const double seconds : outcome->supersteps) sum += seconds;
  EXPECT_NEAR(outcome->makespan, sum, kOverRun);
  EXPECT_EQ(outcome->calls[1].snapshot.ranks[0].processor, outcome->mapping[0]);
  EXPECT_EQ(outcome->calls[1].snapshot.ranks[0].last_move.value, 4u);
}

TEST(Scenario, AmongRanksThatAreAlikeTheGivenOneLeavesFirst) {
  SlowAndFast s;
  s.scenario.params.heuristic = decide::Heuristic::kTop;
  const auto by_number = simulate(s.scenario);
  ASSERT_TRUE(by_number) << by_number.error().message;
  ASSERT_FALSE(by_number->moves.empty());
  const std::uint32_t other = 1 - by_number->moves[0].rank.value;
  s.scenario.leave_first = {RankId{99}, RankId{3}, RankId{other}};  // 3 is in the other Set, and there is no 99
  const auto given = simulate(s.scenario);
  ASSERT_TRUE(given) << given.error().message;
  ASSERT_FALSE(given->moves.empty());
  EXPECT_EQ(given->moves[0].rank, RankId{other});
  EXPECT_EQ(given->moves[0].from, ProcessorId{other});
}

TEST(Scenario, AMoveMayCarryItsImageTwiceAndCostASuperstep) {
  SlowAndFast s;
  s.platform.image_copies = 2;
  const auto twice = simulate(s.scenario);
  ASSERT_TRUE(twice) << twice.error().message;
  ASSERT_EQ(twice->moves.size(), 2u);
  EXPECT_NEAR(twice->migration_seconds, 0.25 + 2 * 1e6 / 50e6, kOverRun);
  s.platform.move_repeats = true;
  const auto repeated = simulate(s.scenario);
  ASSERT_TRUE(repeated) << repeated.error().message;
  EXPECT_NEAR(repeated->migration_seconds, repeated->supersteps[3], kOverRun) << "the longer of both";
}

TEST(Scenario, SimulateAllEqualsThreeSingleRuns) {
  SlowAndFast s;
  const auto all = simulate_all(s.scenario);
  ASSERT_TRUE(all);
  for (const auto& [mode, joint] : {std::pair{Mode::kAlone, &all->alone}, std::pair{Mode::kDeciding, &all->deciding},
                                    std::pair{Mode::kMigrating, &all->migrating}}) {
    s.scenario.mode = mode;
    const auto single = simulate(s.scenario);
    ASSERT_TRUE(single);
    EXPECT_EQ(single->makespan, joint->makespan);
    EXPECT_EQ(single->supersteps, joint->supersteps);
    EXPECT_EQ(single->calls_made, joint->calls_made);
    EXPECT_EQ(single->mapping, joint->mapping);
    EXPECT_EQ(single->stretches.size(), joint->stretches.size());
    EXPECT_NEAR(single->stretches.back().end, joint->stretches.back().end, kOverRun);
  }
}

// The demand differs between supersteps and repeats after seven.
Script irregular() {
  std::vector<Demand> demands;
  for (int t = 0; t < 7; ++t) {
    Demand demand{.instructions = {1e8 * (t + 1), 2e8, t % 2 == 0 ? 0 : 3e8, 1.1e8 * t}};
    for (std::uint32_t i = 0; i < 4; ++i)
      for (std::uint32_t k = 0; k < 4; ++k)
        if (i != k && (i + k + static_cast<std::uint32_t>(t)) % 3 == 0)
          demand.messages.push_back(message(i, k, 1e4 * (t + 1)));
    demands.push_back(demand);
  }
  return Script(demands, 60);
}

TEST(Scenario, CachedSuperstepsEqualSimulatedOnes) {
  SlowAndFast s;
  const Script workload = irregular();
  Scenario scenario{
      .platform = s.platform, .workload = workload, .mapping = s.scenario.mapping, .params = s.scenario.params};
  const auto remembering = simulate(scenario);
  scenario.memoise = false;
  const auto forgetful = simulate(scenario);
  const auto again = simulate(scenario);
  ASSERT_TRUE(remembering && forgetful && again);
  EXPECT_LT(remembering->simulated, forgetful->simulated);
  EXPECT_EQ(forgetful->simulated, 60u);
  for (const auto& other : {remembering, again}) {
    EXPECT_EQ(forgetful->supersteps, other->supersteps);
    EXPECT_EQ(forgetful->makespan, other->makespan);
    EXPECT_EQ(forgetful->mapping, other->mapping);
    EXPECT_EQ(call_supersteps(*forgetful), call_supersteps(*other));
  }
}

TEST(Scenario, RecordedInputsReproduceThePlan) {
  SlowAndFast s;
  const Script workload = irregular();
  int calls = 0;
  Scenario scenario{
      .platform = s.platform, .workload = workload, .mapping = s.scenario.mapping, .params = s.scenario.params};
  scenario.on_call = [&](const CallInProgress& now) {
    ++calls;
    const record::Call call{.job = "script",
                            .params = now.params,
                            .snapshot = now.snapshot,
                            .state = now.state,
                            .supersteps = now.supersteps,
                            .plan = now.plan};
    const auto plan = record::replay(call, now.params);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(record::difference(now.plan, *plan), "");
  };
  ASSERT_TRUE(simulate(scenario));
  EXPECT_GT(calls, 2);
}

TEST(Scenario, RejectsAnInvalidMapping) {
  SlowAndFast s;
  s.scenario.mapping = on({0, 1});
  EXPECT_EQ(simulate(s.scenario).error().message, "the mapping places 2 ranks, but script has 4");
  s.scenario.mapping = on({0, 1, 2, 9});
  EXPECT_EQ(simulate(s.scenario).error().message, "the mapping has processor 9, but there are 6");
}

}  // namespace
}  // namespace bsp::sim::test
