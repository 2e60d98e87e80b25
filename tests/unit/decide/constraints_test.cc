// What may not move, and that it says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/decide/explain.h"
#include "operator/decide/make_plan.h"
#include "operator/decide/model/strategy.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Ranks 0 and 1 would go from slow to fast under every heuristic; rank 2 is on fast.
World world_of_three() { return World({{"slow", 2, 5e8, 1}, {"fast", 3, 1e9, 1}}, {0, 1, 2}); }

class Constraint : public ::testing::TestWithParam<Heuristic> {
 protected:
  [[nodiscard]] Params params() const { return {.heuristic = GetParam(), .x = 0.5}; }
};
INSTANTIATE_TEST_SUITE_P(Heuristics, Constraint,
                         ::testing::Values(Heuristic::kPercentage, Heuristic::kAutoMig, Heuristic::kMigCube,
                                           Heuristic::kMigHull, Heuristic::kBottleneck),
                         [](const auto& tested) { return std::string(strategy_for(tested.param).name); });

TEST_P(Constraint, NoneLetsBothMove) {
  const auto plan = world_of_three().plan(params());
  ASSERT_TRUE(plan);
  EXPECT_THAT(moved_ranks(*plan), ElementsAre(0, 1));
  EXPECT_EQ(stay_of(*plan, 2).reason, Reason::kBestSetIsOwn);
  EXPECT_EQ(stay_of(*plan, 2).target, SetId{1});
}

TEST_P(Constraint, NotMigratableSaysWhatKeepsTheRank) {
  World world = world_of_three();
  world.snapshot.ranks[0].not_migratable = "an open RMA window";
  world.snapshot.ranks[2].not_migratable = "an open RMA window";
  const auto plan = world.plan(params());
  EXPECT_EQ(stay_of(*plan, 0).reason, Reason::kNotMigratable);
  EXPECT_EQ(stay_of(*plan, 2).reason, Reason::kBestSetIsOwn) << "nothing is kept from moving";
}

TEST_P(Constraint, CooldownCountsSuperstepsSinceTheLastMove) {
  World world = world_of_three();
  Params p = params();
  p.alpha0 = 10;
  p.cooldown = 4;
  world.snapshot.ranks[0].last_move = Superstep{7};
  world.snapshot.ranks[1].last_move = Superstep{6};
  const auto plan = world.plan(p);
  EXPECT_EQ(stay_of(*plan, 0).reason, Reason::kCooldown);
  EXPECT_DOUBLE_EQ(stay_of(*plan, 0).value, 3);
  EXPECT_DOUBLE_EQ(stay_of(*plan, 0).limit, 4);
  ASSERT_EQ(plan->pm_list.size(), 1u);
  EXPECT_EQ(plan->pm_list[0].rank, RankId{1});
}

TEST_P(Constraint, CordonedSetsTakeNoRank) {
  World world = world_of_three();
  world.snapshot.platform.sets[1].cordoned = true;
  const auto plan = world.plan(params());
  EXPECT_THAT(plan->moves, IsEmpty());
  EXPECT_EQ(stay_of(*plan, 0).reason, Reason::kCordoned);
  EXPECT_EQ(stay_of(*plan, 0).target, SetId{1});
}

TEST_P(Constraint, CordonedProcessorsTakeNoRank) {
  World world = world_of_three();
  world.snapshot.platform.processors[3].cordoned = true;
  const auto plan = world.plan(params());
  for (const Move& move : plan->moves) EXPECT_EQ(move.to, ProcessorId{4});
  world.snapshot.platform.processors[4].cordoned = true;
  EXPECT_EQ(stay_of(*world.plan(params()), 0).reason, Reason::kNoCapacity);
}

TEST_P(Constraint, ASetWithoutMovesKeepsARankAway) {
  World world = world_of_three();
  world.snapshot.ranks[0].no_moves_to = {SetId{1}};
  EXPECT_EQ(stay_of(*world.plan(params()), 0).reason, Reason::kTargetFailed);
}

TEST_P(Constraint, ASetWhoseCpusLackWhatTheRankHasSeenIsNoTarget) {
  World world = world_of_three();
  world.snapshot.ranks[0].no_moves_to = world.snapshot.ranks[0].cpu_differs = {SetId{1}};
  world.snapshot.ranks[0].cpu_lacks = "avx512f";
  const auto plan = world.plan(params());
  // Where the slowest rank stays, those that go by the superstep move no other.
  EXPECT_THAT(moved_ranks(*plan), ::testing::AnyOf(ElementsAre(1), IsEmpty()));
  EXPECT_EQ(stay_of(*plan, 0).reason, Reason::kCpuFeaturesDiffer);
  EXPECT_THAT(
      explain(*plan, world.snapshot),
      ::testing::Contains(HasSubstr("CPUFeaturesDiffer: the CPUs of fast lack avx512f, which its program may use")));
  // It lasts, so it is said before what may pass.
  world.snapshot.platform.processors[3].taken = world.snapshot.platform.processors[4].taken = 1;
  EXPECT_EQ(stay_of(*world.plan(params()), 0).reason, Reason::kCpuFeaturesDiffer);
}

TEST_P(Constraint, AFullSetIsNoTarget) {
  World world = world_of_three();
  world.snapshot.platform.processors[3].taken = world.snapshot.platform.processors[4].taken = 1;
  const auto plan = world.plan(params());
  EXPECT_THAT(plan->moves, IsEmpty());
  EXPECT_EQ(stay_of(*plan, 0).reason, Reason::kNoCapacity);
  EXPECT_EQ(stay_of(*plan, 1).reason, Reason::kNoCapacity);
}

TEST_P(Constraint, TheMoveLimitIsKept) {
  Params p = params();
  p.max_moves = 1;
  World world({{"slow", 1, 1e9}, {"fast", 2, 2e9}}, {0, 0});
  const auto plan = world.plan(p);
  EXPECT_THAT(moved_ranks(*plan), ElementsAre(0));
  EXPECT_EQ(stay_of(*plan, 1).reason, Reason::kMoveLimit);
}

TEST_P(Constraint, TheMinimumGainIsAsked) {
  World world = world_of_three();  // halves the superstep of both, less the cost
  Params p = params();
  p.min_gain = 0.4;
  EXPECT_EQ(world.plan(p)->moves.size(), 2u);
  p.min_gain = 0.6;
  const auto plan = world.plan(p);
  EXPECT_THAT(plan->moves, IsEmpty());
  EXPECT_EQ(stay_of(*plan, 0).reason, Reason::kGainBelowMinimum);
  EXPECT_GT(stay_of(*plan, 0).value, stay_of(*plan, 0).limit);
}

TEST_P(Constraint, AdviceThatIsNotFollowedIsNoMigration) {
  Params p = params();
  p.migrates = false;
  const auto plan = world_of_three().plan(p);
  EXPECT_FALSE(plan->moves.empty());
  EXPECT_EQ(plan->next.gamma, 1u);
  p.migrates = true;
  EXPECT_EQ(world_of_three().plan(p)->next.gamma, 0u);
}

TEST(Capacity, OneSlotForTwoTakesTheHigherPm) {
  World world({{"slow", 2, 5e8, 1}, {"fast", 1, 1e9, 1}}, {0, 1});
  world.instructions = {1e9, 1.1e9};
  const auto plan = world.plan({.heuristic = Heuristic::kPercentage, .x = 0.5});
  EXPECT_THAT(moved_ranks(*plan), ElementsAre(1));
  EXPECT_EQ(stay_of(*plan, 0).reason, Reason::kNoCapacity);
}

TEST(Capacity, VacatedSlotsAreFreeOnlyWhereThePlatformSaysSo) {
  // Rank 0 goes b → c; rank 1 would take its slot, the only one of b that is not taken. b has a
  // free slot at the call so that it is a target at all, and a third rank takes that first.
  World world({{"a", 2, 5e8, 1}, {"b", 2, 1e9, 1}, {"c", 1, 8e9, 1}}, {2, 0, 1});
  world.instructions = {9e9, 1e9, 1.1e9};
  world.snapshot.ranks[1].no_moves_to = {SetId{2}};
  world.snapshot.ranks[2].no_moves_to = {SetId{2}};
  Params params{.heuristic = Heuristic::kPercentage, .x = 0.01};
  auto plan = world.plan(params);
  EXPECT_THAT(moved_ranks(*plan), ElementsAre(0, 2));
  EXPECT_EQ(stay_of(*plan, 1).reason, Reason::kNoCapacity);
  params.reuse_vacated_slots = true;
  plan = world.plan(params);
  EXPECT_THAT(moved_ranks(*plan), ElementsAre(0, 2, 1));
  EXPECT_EQ(plan->moves[1].to, plan->moves[0].from);
}

struct Broken {
  const char* what;
  void (*breaks)(World&, Params&);
  const char* message;
};
class Refused : public ::testing::TestWithParam<Broken> {};
INSTANTIATE_TEST_SUITE_P(
    Input, Refused,
    ::testing::Values(Broken{"alpha0", [](World&, Params& p) { p.alpha0 = 0; }, "alpha0 must be at least 1"},
                      Broken{"d0", [](World&, Params& p) { p.d0 = 1; }, "d0 must be above 0 and below 1, is 1"},
                      Broken{"omega", [](World&, Params& p) { p.omega = 0; }, "omega must be at least 1"},
                      Broken{"x", [](World&, Params& p) { p.x = 0; }, "x must be above 0"},
                      Broken{"delta", [](World&, Params& p) { p.delta = -1; }, "delta must be at least 0"},
                      Broken{"min_gain", [](World&, Params& p) { p.min_gain = 1; }, "min_gain must be"},
                      Broken{"cpu", [](World& w, Params&) { w.snapshot.platform.processors[0].cpu = 0; },
                             "processor slow-0: cpu must be above 0"},
                      Broken{"load", [](World& w, Params&) { w.snapshot.platform.processors[0].load = 1; },
                             "processor slow-0: load must be"},
                      Broken{"T", [](World& w, Params&) { w.snapshot.platform.T = Grid<double>(1, 2); }, "T is 1x2"},
                      Broken{"T_negative", [](World& w, Params&) { w.snapshot.platform.T[1, 0] = -1; },
                             "T from Set fast has a negative"},
                      Broken{"Mig", [](World& w, Params&) { w.snapshot.platform.Mig = Grid<double>(2, 2); },
                             "Mig is 2x2, but there are 3 ranks and 2 Sets"},
                      Broken{"processor", [](World& w, Params&) { w.snapshot.ranks[1].processor.value = 9; },
                             "rank 1 is on no processor"},
                      Broken{"features", [](World& w, Params&) { w.snapshot.ranks[1].no_moves_to = {SetId{7}}; },
                             "Set 7, which does not exist"}),
    [](const auto& i) { return i.param.what; });

TEST_P(Refused, NamesTheField) {
  World world = world_of_three();
  Params params;
  const Window window = world.window(params);
  GetParam().breaks(world, params);
  const auto plan = make_plan(world.snapshot, window, params);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(plan.error().message, HasSubstr(GetParam().message));
}

TEST(Refused, WindowsThatDoNotFit) {
  const World world = world_of_three();
  EXPECT_THAT(make_plan(world.snapshot, Window({}, {}, 3, 2), {}).error().message,
              HasSubstr("no rescheduling call is due"));
  EXPECT_THAT(make_plan(world.snapshot, Window({}, {}, 3, 4), {}).error().message, HasSubstr("other ranks or Sets"));
}

}  // namespace
}  // namespace bsp::decide
