// Whom MigCube and MigHull choose, from points that can be drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "operator/decide/model/strategy.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::ElementsAre;

struct Point {
  double comp, comm, mem;
};

// The plan for ranks 0, 1, … with these points, in the order of the PM list. Each would gain by moving, so that who
// stays was no candidate.
Plan plan_of(void (*heuristic)(const Case&, std::span<const PmEntry>, Plan&), const std::vector<Point>& points) {
  World world({{"slow", 8, 1e8}, {"fast", 8, 1e9}}, {});
  std::vector<PmEntry> list;
  for (std::uint32_t i = 0; i < points.size(); ++i) {
    world.snapshot.ranks.push_back({.processor = {i}});
    list.push_back({{i},
                    SetId{1},
                    points[i].comp,
                    points[i].comm,
                    points[i].mem,
                    points[i].comp + points[i].comm - points[i].mem});
  }
  world.instructions.assign(points.size(), 1e10);  // 100 s on slow, 10 s on fast
  world.recv_bytes = Grid<double>(points.size(), 2);
  const Params params{.alpha0 = 1};
  const Window window = world.window(params);
  Plan plan;
  heuristic({world.snapshot, *columns_of(world.snapshot), window.metrics(), params, 1, 1}, list, plan);
  EXPECT_EQ(plan.moves.size() + plan.stays.size(), points.size());
  return plan;
}

TEST(MigCube, TakesWhatIsInsideTheCubeAroundTheHighestPm) {
  // Distances from p1: 1, 4 and 1, so that the cube reaches 2 to each side.
  const Plan plan = plan_of(strategy_for(Heuristic::kMigCube).plan, {{10, 0, 0}, {9, 0, 0}, {10, 1, 0}, {10, 0, 4}});
  EXPECT_THAT(moved_ranks(plan), ElementsAre(0, 1, 2));
  EXPECT_EQ(stay_of(plan, 3).reason, Reason::kNotCandidate);
  EXPECT_DOUBLE_EQ(stay_of(plan, 3).value, 4);
  EXPECT_DOUBLE_EQ(stay_of(plan, 3).limit, 2);
}

TEST(MigCube, IsACubeAndNoBall) {
  // The corner (8, 2, 2) is 3.46 away, further than the Δ of 2.43, but within 2 along each axis.
  const Plan plan = plan_of(strategy_for(Heuristic::kMigCube).plan, {{10, 0, 0}, {8, 2, 2}, {10, 1.4, 0}});
  EXPECT_THAT(moved_ranks(plan), ElementsAre(0, 1, 2));
}

TEST(MigCube, CountsItsBorders) {
  // The only other point is at the mean distance.
  EXPECT_THAT(moved_ranks(plan_of(strategy_for(Heuristic::kMigCube).plan, {{10, 0, 0}, {7, 0, 0}})), ElementsAre(0, 1));
  // Three at exactly Δ.
  EXPECT_THAT(
      moved_ranks(plan_of(strategy_for(Heuristic::kMigCube).plan, {{10, 5, 5}, {7, 5, 5}, {10, 2, 5}, {10, 5, 8}})),
      ElementsAre(0, 1, 2, 3));
}

TEST(MigCube, OfOneIsThatOne) {
  EXPECT_THAT(moved_ranks(plan_of(strategy_for(Heuristic::kMigCube).plan, {{1, 2, 9}})), ElementsAre(0));
}

TEST(MigCube, LeavesPmBelowZeroToTheTestOfViability) {
  const Plan plan = plan_of(strategy_for(Heuristic::kMigCube).plan, {{1, 0, 2}, {1, 0, 2.5}});
  EXPECT_THAT(moved_ranks(plan), ElementsAre(0, 1));
}

TEST(MigHull, TakesWhatIsNearTheSegmentInAllThreePlanes) {
  // Rank 2 is in the middle of the segment. Rank 3 is 4.24 from its line in the plane of Comp and Comm, where
  // Δ = σ(Comm) = 2.96; in the two others it is nearer.
  const Plan plan = plan_of(strategy_for(Heuristic::kMigHull).plan, {{10, 5, 1}, {6, 1, 1}, {8, 3, 1}, {8, 9, 1}});
  EXPECT_THAT(moved_ranks(plan), ElementsAre(0, 1, 2));
  EXPECT_EQ(stay_of(plan, 3).reason, Reason::kNotCandidate);
  EXPECT_NEAR(stay_of(plan, 3).value, 4.2426, 1e-4);
  EXPECT_NEAR(stay_of(plan, 3).limit, 2.9580, 1e-4);
}

TEST(MigHull, MeasuresToTheNearerEndBeyondTheSegment) {
  // Ranks 2 and 3 are on the line, beyond p2 by 1.41 and by 19.8: σ(Comp) = 6.10.
  const Plan plan = plan_of(strategy_for(Heuristic::kMigHull).plan, {{20, 20, 1}, {19, 19, 1}, {18, 18, 1}, {5, 5, 1}});
  EXPECT_THAT(moved_ranks(plan), ElementsAre(0, 1, 2));
  EXPECT_NEAR(stay_of(plan, 3).value, std::sqrt(2) * 14, 1e-9);
  EXPECT_NEAR(stay_of(plan, 3).limit, std::sqrt(37.25), 1e-9);
}

TEST(MigHull, DoesNotMindWhichEndComesFirst) {
  // p1 to the left of p2 in Comp: rank 2 is between them, rank 3 far off.
  const Plan plan = plan_of(strategy_for(Heuristic::kMigHull).plan, {{6, 9, 1}, {10, 4, 1}, {8, 6, 1}, {8, 0, 1}});
  EXPECT_THAT(moved_ranks(plan), ElementsAre(0, 1, 2));
}

TEST(MigHull, OfTwoEqualPointsMeasuresToThatPoint) {
  // σ(Comp) = 2.06: rank 2 is 1 away, rank 3 is 5.
  const Plan plan = plan_of(strategy_for(Heuristic::kMigHull).plan, {{10, 0, 0}, {10, 0, 0}, {9, 0, 0}, {5, 0, 0}});
  EXPECT_THAT(moved_ranks(plan), ElementsAre(0, 1, 2));
  EXPECT_DOUBLE_EQ(stay_of(plan, 3).value, 5);
}

TEST(MigHull, TakesBothEndsHoweverFarApart) {
  EXPECT_THAT(moved_ranks(plan_of(strategy_for(Heuristic::kMigHull).plan, {{90, 0, 1}, {1, 50, 7}})),
              ElementsAre(0, 1));
  EXPECT_THAT(moved_ranks(plan_of(strategy_for(Heuristic::kMigHull).plan, {{1, 2, 9}})), ElementsAre(0));
}

}  // namespace
}  // namespace bsp::decide
