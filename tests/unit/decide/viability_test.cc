// Top and Percentage: who is a candidate, where it goes, whether that pays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/decide/fast/processors.h"
#include "operator/decide/model/strategy.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Four ranks on a slow Set with PMs in the order 3, 2, 1, 0, and slots for all of them elsewhere.
World four_ranks() {
  World world({{"slow", 4, 5e8}, {"fast", 4, 1e9}}, {0, 1, 2, 3});
  world.instructions = {1.0e9, 1.6e9, 1.8e9, 2.0e9};
  return world;
}

TEST(Top, MovesTheFirstOfTheListOnly) {
  const auto plan = four_ranks().plan({.heuristic = Heuristic::kTop});
  ASSERT_TRUE(plan);
  EXPECT_THAT(moved_ranks(*plan), ElementsAre(3));
  EXPECT_EQ(stay_of(*plan, 2).reason, Reason::kNotCandidate);
  EXPECT_LT(stay_of(*plan, 2).value, stay_of(*plan, 2).limit);
}

TEST(Percentage, MovesAllWithinXOfTheHighestPm) {
  const World world = four_ranks();  // PM = 2·I·… ∝ I, minus 1 ms: shares of the maximum 0.5 0.8 0.9 1
  EXPECT_THAT(moved_ranks(*world.plan({.heuristic = Heuristic::kPercentage, .x = 0.79})), ElementsAre(3, 2, 1));
  EXPECT_THAT(moved_ranks(*world.plan({.heuristic = Heuristic::kPercentage, .x = 0.81})), ElementsAre(3, 2));
  EXPECT_THAT(moved_ranks(*world.plan({.heuristic = Heuristic::kPercentage, .x = 1})), ElementsAre(3))
      << "the maximum itself always counts";
}

TEST(TopAndPercentage, NeedAPositivePm) {
  World world({{"slow", 1, 5e8}, {"fast", 1, 1e9}}, {0});
  world.snapshot.platform.Mig = Grid<double>(1, 2, 100);
  world.snapshot.platform.Mig[0, 1] = 5;  // PM(fast) = 4 − 5 < 0, and its own Set's is lower still
  for (Heuristic heuristic : {Heuristic::kTop, Heuristic::kPercentage}) {
    const auto plan = world.plan({.heuristic = heuristic});
    ASSERT_TRUE(plan);
    EXPECT_THAT(plan->moves, IsEmpty());
    EXPECT_EQ(stay_of(*plan, 0).reason, Reason::kNotCandidate);
  }
}

TEST(Viability, ComparesTheTwoSidesOverTheWindow) {
  // 10 supersteps of 1e9 instructions: 20 s on slow, 10 s on fast. 1e6 bytes from fast per
  // superstep: 0.1 s from outside, 0.01 s inside. Mem = 1e8 · 10 ns + 1 ms.
  World world({{"slow", 1, 5e8}, {"fast", 1, 1e9}}, {0});
  world.recv_bytes[0, 1] = 1e6;
  world.snapshot.ranks[0].memory_bytes = 1e8;
  const auto plan = world.plan({.heuristic = Heuristic::kTop, .alpha0 = 10});
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->moves.size(), 1u);
  const Move& move = plan->moves[0];
  EXPECT_DOUBLE_EQ(move.t_stay, 20.1);
  EXPECT_DOUBLE_EQ(move.t_move, 10.01 + 1.001);
  EXPECT_DOUBLE_EQ(move.cost, 1.001);
  EXPECT_NEAR(move.gain_superstep, 1.009, 1e-12);
  EXPECT_NEAR(move.gain_window, 10.09 - 1.001, 1e-12);
  EXPECT_DOUBLE_EQ(plan->objective.before, 20.1);
  EXPECT_DOUBLE_EQ(plan->objective.after, 11.011);
  EXPECT_DOUBLE_EQ(plan->forecast.before, 2 + 0.01);
  EXPECT_DOUBLE_EQ(plan->forecast.after, 1 + 0.001);
}

TEST(Viability, OverOneSuperstepTheSameCostIsTooMuch) {
  World world({{"slow", 1, 5e8}, {"fast", 1, 1e9}}, {0});
  world.snapshot.ranks[0].memory_bytes = 1e8;  // Mem 1.001 s, gain of a superstep 1 s
  const auto refused = world.plan({.heuristic = Heuristic::kTop, .horizon = Horizon::kSuperstep});
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->moves, IsEmpty());
  EXPECT_EQ(stay_of(*refused, 0).reason, Reason::kGainBelowCost);
  EXPECT_DOUBLE_EQ(stay_of(*refused, 0).value, 2.001);
  EXPECT_DOUBLE_EQ(stay_of(*refused, 0).limit, 2);
  EXPECT_EQ(world.plan({.heuristic = Heuristic::kTop})->moves.size(), 1u);
}

TEST(Viability, AnEqualTimeIsNoReasonToMove) {
  World world({{"slow", 1, 5e8}, {"fast", 1, 1e9}}, {0});
  world.snapshot.platform.Mig[0, 1] = 1;
  const auto plan = world.plan({.heuristic = Heuristic::kTop, .horizon = Horizon::kSuperstep});
  EXPECT_THAT(plan->moves, IsEmpty());
}

TEST(Viability, EachAcceptedMoveIsSeenByTheNextTest) {
  // fast has one processor: after rank 0 it holds 1 s of work, after rank 1 it would hold 2 s,
  // which is what slow offers.
  const World world({{"slow", 2, 5e8}, {"fast", 1, 1e9}}, {0, 1});
  const auto plan = world.plan({.heuristic = Heuristic::kPercentage});
  ASSERT_TRUE(plan);
  EXPECT_THAT(moved_ranks(*plan), ElementsAre(0));
  EXPECT_EQ(stay_of(*plan, 1).reason, Reason::kGainBelowCost);
}

TEST(Viability, ARankThatLeavesASharedProcessorRelievesTheOther) {
  const World world({{"slow", 1, 1e9}, {"fast", 2, 1.5e9}}, {0, 0});
  const auto plan = world.plan({.heuristic = Heuristic::kPercentage, .alpha0 = 1});
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->moves.size(), 2u);
  EXPECT_DOUBLE_EQ(plan->moves[0].t_stay, 2);
  EXPECT_DOUBLE_EQ(plan->moves[1].t_stay, 1);
}

TEST(Manager, PicksTheProcessorThatIsDoneFirstWithTheCandidate) {
  World world({{"home", 1, 1e9}, {"j", 3, 1e9}}, {0, 1, 2, 2});
  world.snapshot.platform.processors[3] = {.name = "slow", .set = SetId{1}, .cpu = 2e8};
  // With 1e9 more: j-0 has 2 s, j-1 has 3 s, the empty slow one 5 s.
  const Columns columns = *columns_of(world.snapshot);
  const Processors processors(columns, world.instructions, world.instructions, false);
  const auto pick = processors.pick(SetId{1}, RankId{0});
  ASSERT_TRUE(pick);
  EXPECT_EQ(pick->processor, ProcessorId{1});
  EXPECT_DOUBLE_EQ(pick->time, 2);
}

TEST(Manager, ExternalLoadMakesAProcessorSlower) {
  World world({{"home", 1, 1e9}, {"j", 2, 1e9}}, {0});
  world.snapshot.platform.processors[1].load = 0.5;
  const Columns columns = *columns_of(world.snapshot);
  const Processors processors(columns, world.instructions, world.instructions, false);
  EXPECT_EQ(processors.pick(SetId{1}, RankId{0})->processor, ProcessorId{2});
}

TEST(Strategies, AreInATable) {
  std::vector<std::string_view> names;
  for (const Strategy& s : strategies()) names.push_back(s.name);
  EXPECT_THAT(names, ElementsAre("Top", "Percentage", "AutoMig", "MigCube", "MigHull", "Bottleneck", "Auto"));
  for (const Strategy& s : strategies()) {
    EXPECT_EQ((*strategy_named(s.name))->heuristic, s.heuristic);
    EXPECT_EQ(&strategy_for(s.heuristic), *strategy_named(s.name));
  }
  EXPECT_EQ(strategy_named("Automig").error().message,
            "unknown heuristic 'Automig': use one of Top, Percentage, AutoMig, MigCube, MigHull, Bottleneck, Auto");
}

}  // namespace
}  // namespace bsp::decide
