#include "operator/decide/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Explain, TellsTheWholeStoryOfACall) {
  World world({{"slow", 3, 5e8, 1}, {"fast", 3, 1e9, 1}}, {0, 1, 2, 3});
  world.snapshot.ranks[2].not_migratable = "an open RMA window";
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 4, .max_moves = 1});
  ASSERT_TRUE(plan);
  // Rank 2 has to stay, so that no level gets below its 2 s.
  EXPECT_THAT(explain(*plan, world.snapshot),
              ElementsAre("call after superstep 4: AutoMig moves no rank",
                          "PM list (ms)                    Comp      + Comm       - Mem        = PM",
                          "  rank 0 → fast             4000.000       0.000       1.000    3999.000",
                          "  rank 1 → fast             4000.000       0.000       1.000    3999.000",
                          "levels (ms)                     Time      + Comm       + Mem        = pf",
                          "* 0 now                     2000.000       0.000       0.000    2000.000",
                          "  1 rank 0 → fast           2000.000       0.000       1.000    2001.000",
                          "stay rank 0: GainBelowCost: with it moved to fast pf is 2.001 s, and without any "
                          "move 2 s",
                          "stay rank 1: MoveLimit: the limit of moves per call excludes it, and the moves within "
                          "the limit do not pay",
                          "stay rank 2: NotMigratable: an open RMA window",
                          "stay rank 3: BestSetIsOwn: no Set has a higher PM than its own, fast",
                          "superstep predicted 2 s → 2 s (+0.0 %)",
                          "next call after superstep 12: α 4 → 8, D 0.5 → 0.5, 1 call without a move"));
}

TEST(Explain, AMoveSaysWhatItGainsAndWhatIsOnlyAssumed) {
  World world({{"slow", 1, 5e8, 1}, {"fast", 1, 1e9, 1}}, {0});
  auto plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 4});
  EXPECT_EQ(headline(*plan, world.snapshot),
            "call after superstep 4: AutoMig moves 1 of 1 rank, pf 2 s → 1.001 s (-50.0 %)");
  EXPECT_EQ(describe(plan->moves.at(0), world.snapshot),
            "rank 0: slow/slow-0 → fast/fast-0, its superstep 1 s shorter, 3.999 s gained over 4 supersteps, "
            "costs 1 ms once (speed and cost assumed, not measured)");

  Platform& platform = world.snapshot.platform;
  for (Processor& p : platform.processors) p.cpu_origin = Origin::kMeasured;
  platform.T_origin = Grid<Origin>(2, 2, Origin::kMeasured);
  platform.Mig_origin = Grid<Origin>(1, 2, Origin::kMeasured);
  plan = world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 4});
  EXPECT_FALSE(plan->moves.at(0).cost_assumed);
  EXPECT_FALSE(plan->moves.at(0).cpu_assumed);
  EXPECT_THAT(describe(plan->moves.at(0), world.snapshot), ::testing::EndsWith("costs 1 ms once"));
}

TEST(Explain, OfEqualsAndOfALimitThatWasUsed) {
  World world({{"slow", 3, 5e8, 1}, {"fast", 4, 1e9, 1}}, {0, 1, 3});
  const auto top = world.plan({.heuristic = Heuristic::kTop});
  EXPECT_EQ(describe(stay_of(*top, 1), *top, world.snapshot),
            "NotCandidate: its PM of 3.999 s is the highest, as that of a rank before it");
  const auto limited = world.plan({.heuristic = Heuristic::kPercentage, .max_moves = 1});
  ASSERT_EQ(limited->moves.size(), 1u);
  EXPECT_EQ(describe(stay_of(*limited, 1), *limited, world.snapshot),
            "MoveLimit: the limit of moves per call is used up by higher PMs");
}

TEST(Explain, EachHeuristicSaysInItsOwnTermsWhyARankIsNoCandidate) {
  // Comp is 4, 3.6, 3.2 and 0.4 s, the other terms are alike.
  World world({{"slow", 4, 5e8, 1}, {"fast", 4, 1e9, 1}}, {0, 1, 2, 3});
  world.instructions = {1e9, 9e8, 8e8, 1e8};
  const auto why = [&](Heuristic heuristic) {
    const auto plan = world.plan({.heuristic = heuristic});
    return describe(stay_of(*plan, 3), *plan, world.snapshot);
  };
  EXPECT_EQ(why(Heuristic::kTop), "NotCandidate: its PM of 399 ms is below 3.999 s");
  EXPECT_EQ(why(Heuristic::kPercentage), "NotCandidate: its PM of 399 ms is below 3.199 s");
  EXPECT_EQ(why(Heuristic::kMigCube),
            "NotCandidate: its terms lie 3.6 s from those of the highest PM, outside the cube of 1.6 s each way");
  EXPECT_EQ(why(Heuristic::kMigHull),
            "NotCandidate: its terms lie 3.2 s from the line between the two highest PMs', more than 1.414 s");
  EXPECT_EQ(why(Heuristic::kBottleneck),
            "NotCandidate: moving it alone shortens nothing: it takes 200 ms of a superstep of 1 s");
}

TEST(Explain, BottleneckSaysWhatTheTimeToTheNextCallWouldBe) {
  World world({{"slow", 1, 5e8}, {"fast", 1, 1e9}}, {0});
  auto plan = world.plan({.heuristic = Heuristic::kBottleneck});
  EXPECT_EQ(headline(*plan, world.snapshot),
            "call after superstep 10: Bottleneck moves 1 of 1 rank, time to the next call 40 s → 20 s (-50.0 %)");
  world.snapshot.platform.Mig = Grid<double>(1, 2, 5);
  plan = world.plan({.heuristic = Heuristic::kBottleneck, .horizon = Horizon::kSuperstep});
  EXPECT_EQ(describe(stay_of(*plan, 0), *plan, world.snapshot),
            "GainBelowCost: with it moved to fast the time to the next call is 6 s, without 2 s");
}

TEST(Explain, CountsNodesWithoutAPriceNotTheirSlots) {
  Snapshot snapshot;
  snapshot.platform.processors = {{.name = "a"}, {.name = "a"}, {.name = "b", .price = 1}};
  Plan plan;
  plan.spending.limit = 1;
  EXPECT_THAT(explain_spending(plan, snapshot), Contains("1 of 2 nodes has no price and counts as the dearest"));
  snapshot.platform.processors.pop_back();
  EXPECT_THAT(explain_spending(plan, snapshot),
              Contains("no node has a price, so that the cheapest job is the shortest"));
}

TEST(Explain, CountsWhatDoesNotFit) {
  World world({{"slow", 40, 5e8, 1}, {"fast", 40, 1e9, 1}},
              {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
               40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59});
  const auto plan = world.plan({.heuristic = Heuristic::kAutoMig});
  const auto lines = explain(*plan, world.snapshot, 3);
  EXPECT_THAT(lines, Contains("  … and 17 more"));
  EXPECT_THAT(lines, Contains("  … and 18 more")) << "levels, of which the chosen one is shown anyway";
  EXPECT_THAT(lines, Contains(HasSubstr("* 20 rank 19 → fast")));
  EXPECT_THAT(lines, Contains("stay 17 more ranks: BestSetIsOwn"));
}

}  // namespace
}  // namespace bsp::decide
