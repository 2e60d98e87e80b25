#include "operator/decide/papers/automig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/decide/make_plan.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::size_t best_of(std::initializer_list<double> pf) {
  std::vector<Level> levels;
  for (double v : pf) levels.emplace_back().pf = v;
  return best_level(levels);
}

TEST(BestLevel, OfTheWorkedExampleMovesAllTen) {
  EXPECT_EQ(best_of({1.62, 1.79, 1.75, 1.78, 1.79, 1.81, 1.76, 1.74, 1.82, 1.78, 1.47}), 10u);
}

TEST(BestLevel, IsZeroUnlessSomethingIsBelowTheCurrentMapping) {
  EXPECT_EQ(best_of({1.0}), 0u);
  EXPECT_EQ(best_of({1.0, 1.0, 1.5}), 0u);
}

TEST(BestLevel, IsTheOneWithFewerMovesAmongEquals) { EXPECT_EQ(best_of({2.0, 1.5, 1.0, 1.2, 1.0}), 2u); }

// Two ranks of 1e9 instructions on a slow Set (2 s each), fast processors free (1 s): one move
// alone leaves the other at 2 s, both together bring the superstep to 1 s.
TEST(AutoMig, MovesTogetherWhatGainsOnlyTogether) {
  const World world({{"slow", 2, 5e8}, {"fast", 2, 1e9}}, {0, 1});
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->levels.size(), 3u);
  EXPECT_DOUBLE_EQ(plan->levels[0].pf, 2);
  EXPECT_DOUBLE_EQ(plan->levels[1].pf, 2.001);
  EXPECT_DOUBLE_EQ(plan->levels[2].pf, 1.001);
  EXPECT_EQ(plan->chosen_level, 2u);
  EXPECT_THAT(moved_ranks(*plan), ElementsAre(0, 1));
  EXPECT_EQ(plan->moves[0].to, ProcessorId{2});
  EXPECT_EQ(plan->moves[1].to, ProcessorId{3}) << "the first move is seen by the second";
  EXPECT_DOUBLE_EQ(plan->objective.before, 2);
  EXPECT_DOUBLE_EQ(plan->objective.after, 1.001);
  EXPECT_DOUBLE_EQ(plan->forecast.after, 1);
  EXPECT_DOUBLE_EQ(plan->moves[0].gain_superstep, 1);
  EXPECT_DOUBLE_EQ(plan->moves[0].cost, 0.001);
}

TEST(AutoMig, AddsUpRanksThatShareAProcessor) {
  // Three ranks on one processor: 3 s. Each goes to a processor of its own.
  const World world({{"a", 1, 1e9}, {"b", 3, 1.1e9}}, {0, 0, 0});
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  ASSERT_TRUE(plan);
  EXPECT_DOUBLE_EQ(plan->levels[0].time, 3);
  EXPECT_DOUBLE_EQ(plan->levels[1].time, 2);
  EXPECT_DOUBLE_EQ(plan->levels[2].time, 1);
  EXPECT_DOUBLE_EQ(plan->levels[3].time, 1 / 1.1);
  EXPECT_EQ(plan->chosen_level, 3u);
}

TEST(AutoMig, CommTakesTheWorstSenderSetOfTheWorstRank) {
  // Rank 0 receives 1e8 bytes from Set b: 1 s from outside, 0.1 s when it is in b itself.
  World world({{"a", 2, 1e9}, {"b", 1, 1.01e9}}, {0, 1});
  world.recv_bytes[0, 1] = 1e8;
  world.recv_bytes[0, 0] = 1e6;
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  ASSERT_TRUE(plan);
  EXPECT_DOUBLE_EQ(plan->levels[0].comm, 1);
  EXPECT_DOUBLE_EQ(plan->levels[1].comm, 0.1);
  EXPECT_EQ(plan->levels[1].rank, RankId{0});
  EXPECT_EQ(plan->moves[0].rank, RankId{0});
}

TEST(AutoMig, TakesTheLargestMemOfTheMovedNotTheSum) {
  World world({{"slow", 2, 5e8}, {"fast", 2, 1e9}}, {0, 1});
  world.snapshot.ranks[0].memory_bytes = 1e7;  // 0.1 s between the Sets
  world.snapshot.ranks[1].memory_bytes = 2e7;
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  ASSERT_TRUE(plan);
  EXPECT_DOUBLE_EQ(plan->levels[1].mem, 0.101);
  EXPECT_DOUBLE_EQ(plan->levels[2].mem, 0.201);
}

TEST(AutoMig, MovesNoRankWhereNoLevelIsBetterAndSaysSo) {
  World world({{"slow", 1, 5e8}, {"fast", 1, 1e9}}, {0});
  world.snapshot.platform.Mig = Grid<double>(1, 2, 1.5);  // 2 s now, 1 + 1.5 s moved
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->moves, IsEmpty());
  const Stay& stay = stay_of(*plan, 0);
  EXPECT_EQ(stay.reason, Reason::kGainBelowCost);
  EXPECT_DOUBLE_EQ(stay.value, 2.5);
  EXPECT_DOUBLE_EQ(stay.limit, 2);
  EXPECT_EQ(plan->next.gamma, 1u);
}

TEST(AutoMig, StopsAtTheBestLevelAndSaysWhatOneMoreWouldGive) {
  // The fast processor does one rank in 0.5 s and two in 1 s: the second move gains nothing.
  const World world({{"slow", 2, 1e9}, {"fast", 1, 2e9}}, {0, 0, 1});
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->chosen_level, 1u);
  EXPECT_EQ(stay_of(*plan, 1).reason, Reason::kNotCandidate);
  EXPECT_DOUBLE_EQ(stay_of(*plan, 1).limit, plan->objective.after);
  EXPECT_GE(stay_of(*plan, 1).value, plan->objective.after);
}

TEST(AutoMig, PlansWithoutASlotForEveryRankGoOnWithTheNext) {
  // Two slots for three ranks that would all go to fast; rank 2 has another target.
  World world({{"slow", 4, 5e8, 1}, {"fast", 2, 2e9, 1}, {"near", 1, 6e8, 1}}, {0, 1, 2, 3});
  world.instructions = {4e9, 3e9, 2e9, 1e9};
  world.recv_bytes[3, 2] = 1e9;  // 10 s from outside
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  ASSERT_TRUE(plan);
  EXPECT_EQ(stay_of(*plan, 2).reason, Reason::kNoCapacity);
  EXPECT_EQ(stay_of(*plan, 2).target, SetId{1});
  EXPECT_EQ(plan->levels.size(), 4u) << "three entries had a slot";
  EXPECT_EQ(plan->moves.size(), 3u);
}

TEST(AutoMig, ASlotThatThePlanVacatesIsNotFreeForIt) {
  // Rank 1 leaves b for c, where all that it receives comes from; rank 0 would like its place.
  World world({{"a", 1, 5e8, 1}, {"b", 2, 2e9, 1}, {"c", 1, 1.5e9, 1}}, {0, 1});
  world.snapshot.platform.processors[2].taken = 1;
  world.recv_bytes[1, 2] = 1e9;
  world.instructions = {1e9, 4e9};
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  ASSERT_TRUE(plan);
  for (const Move& move : plan->moves) EXPECT_NE(move.to, ProcessorId{1});
}

TEST(AutoMig, EntriesWithNegativePmCountToo) {
  // Mem is far above the gain of one rank, but own Mem is higher still: PM < 0, yet the best Set is
  // fast.
  World world({{"slow", 1, 5e8}, {"fast", 1, 1e9}}, {0});
  world.snapshot.platform.Mig = Grid<double>(1, 2, 100);
  world.snapshot.platform.Mig[0, 1] = 5;
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 1});
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->pm_list.size(), 1u);
  EXPECT_LT(plan->pm_list[0].pm, 0);
  EXPECT_EQ(plan->levels.size(), 2u);
}

TEST(AutoMig, UsesTheLastSuperstepForPfAndTheHorizonForTheManagersPick) {
  // On fast-0 sits a rank that computed much early in the window and nothing in its last superstep.
  World world({{"slow", 1, 5e8}, {"fast", 2, 1e9}}, {0, 1, 2});
  const auto run = [&](Horizon horizon) {
    const Params params{.heuristic = Heuristic::kAutoMig, .alpha0 = 2, .horizon = horizon};
    Window window({}, params, 3, 2);
    world.instructions = {1e9, 9e9, 1e8};
    window.add(world.superstep(1));
    world.instructions = {1e9, 0, 1e8};
    window.add(world.superstep(2));
    return *make_plan(world.snapshot, window, params);
  };
  const Plan over_window = run(Horizon::kWindow);
  EXPECT_DOUBLE_EQ(over_window.levels[0].time, 2) << "pf: rank 0's last superstep";
  EXPECT_EQ(over_window.moves.at(0).to, ProcessorId{2});
  EXPECT_EQ(run(Horizon::kSuperstep).moves.at(0).to, ProcessorId{1});
}

}  // namespace
}  // namespace bsp::decide
