// What the snapshot makes of a spec, nodes, ranks and measurements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/decide/columns.h"
#include "operator/observe/snapshot.h"

namespace bsp::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<NodeFacts> nodes() {
  return {{.name = "fast-0", .set = "fast", .speed = 2, .slots = 4, .taken = 1},
          {.name = "other-0", .set = "other"},
          {.name = "slow-0", .set = "slow", .speed = 0.5, .cordoned = true},
          {.name = "slow-1", .set = "slow", .speed = 1.5}};
}

TEST(Snapshot, SetsInTheOrderOfTheSpecOrByName) {
  crds::SetsSpec spec;
  EXPECT_THAT(set_names(spec, nodes()), ElementsAre("fast", "other", "slow"));
  spec.names = {"slow", "fast"};
  EXPECT_THAT(set_names(spec, nodes()), ElementsAre("slow", "fast"));
  EXPECT_DOUBLE_EQ(nominal_speeds(nodes()).at("slow"), 1) << "the mean of its nodes";
}

TEST(Snapshot, PlatformFromNodesAndCalibration) {
  Calibration c;
  SuperstepTimes measured;
  measured.instructions = {3e9};
  measured.compute_seconds = {1};
  c.add_superstep(measured, {"fast"});
  c.add_move("slow", "fast", 100'000'000, {.total_ms = 900, .transfer_ms = 500});
  const decide::Platform p = make_platform({"slow", "fast"}, nodes(), c);
  ASSERT_THAT(p.sets, SizeIs(2));
  EXPECT_EQ(p.sets[1].name, "fast");
  ASSERT_THAT(p.processors, SizeIs(3)) << "the node of another Set is left out";
  const decide::Processor& fast = p.processors[0];
  EXPECT_EQ(fast.name, "fast-0");
  EXPECT_EQ(fast.set.value, 1u);
  EXPECT_DOUBLE_EQ(fast.cpu, 3e9);
  EXPECT_EQ(fast.cpu_origin, decide::Origin::kMeasured);
  EXPECT_EQ(fast.slots, 4u);
  EXPECT_EQ(fast.taken, 1u);
  EXPECT_FALSE(fast.cordoned);
  EXPECT_TRUE(p.processors[1].cordoned);
  EXPECT_EQ(p.processors[1].cpu_origin, decide::Origin::kAssumed);
  EXPECT_DOUBLE_EQ(p.processors[1].cpu, 1.5e9) << "half of fast's nominal speed, half of what that measured";
  EXPECT_DOUBLE_EQ((p.T[0, 1]), 5e-9);
  EXPECT_EQ((p.T_origin[0, 1]), decide::Origin::kMeasured);
  EXPECT_EQ((p.T_origin[0, 0]), decide::Origin::kAssumed);
  EXPECT_DOUBLE_EQ((p.Mig[0, 1]), 0.4);
  EXPECT_EQ((p.Mig_origin[0, 1]), decide::Origin::kMeasured);
  EXPECT_EQ((p.Mig_origin[0, 0]), decide::Origin::kAssumed);
}

TEST(Snapshot, ASetOfWhoseSpeedNothingIsKnownIsUntried) {
  std::vector<NodeFacts> all = nodes();
  Calibration c;
  SuperstepTimes measured;
  measured.instructions = {3e9};
  measured.compute_seconds = {1};
  c.add_superstep(measured, {"fast"});
  EXPECT_THAT(untried_sets(all, c), ElementsAre("other", "slow"));
  EXPECT_THAT(untried_sets(all, c, {{"fast", 1}, {"slow", 2}}), ElementsAre("other")) << "a benchmark compares them";
  const decide::Platform p = make_platform({"slow", "fast"}, all, c);
  EXPECT_TRUE(p.sets[0].untried);
  EXPECT_FALSE(p.sets[1].untried);

  all[2].speed_told = true;
  all[3].speed_told = true;
  EXPECT_THAT(untried_sets(all, c), ElementsAre("other", "slow")) << "compared with nothing";
  all[0].speed_told = true;
  EXPECT_THAT(untried_sets(all, c), ElementsAre("other"));
  all[3].speed_told = false;
  EXPECT_THAT(untried_sets(all, c), ElementsAre("other", "slow")) << "not of all of its nodes";
}

TEST(Snapshot, RanksWithAllThatDecidesOverThem) {
  const std::vector<decide::Partner> partners{{{1}, 512}};
  const decide::Snapshot s = make_snapshot(
      make_platform({"slow", "fast"}, nodes(), {}),
      {{.node = "slow-1", .memory_bytes = 5e6, .last_move = 17, .blocked_reason = "a window", .partners = partners},
       {.node = "fast-0", .blocked_reason = ""}});
  ASSERT_THAT(s.ranks, SizeIs(2));
  EXPECT_EQ(s.ranks[0].processor.value, 2u);
  EXPECT_DOUBLE_EQ(s.ranks[0].memory_bytes, 5e6);
  EXPECT_EQ(s.ranks[0].last_move.value, 17u);
  EXPECT_EQ(s.ranks[0].not_migratable, "a window");
  EXPECT_EQ(s.ranks[0].partners, partners);
  EXPECT_TRUE(s.ranks[1].partners.empty());
  EXPECT_EQ(s.set({1}).value, 1u);
  const auto read = decide::columns_of(s);
  EXPECT_TRUE(read) << read.error().message;
  const decide::Snapshot lost =
      make_snapshot(make_platform({"fast"}, nodes(), {}), {{.node = "slow-1", .blocked_reason = ""}});
  EXPECT_FALSE(decide::columns_of(lost)) << "a rank on a node that is no more must not be decided over";
}

TEST(Snapshot, ParametersFromTheSpec) {
  crds::ReschedulingSpec spec;
  spec.alpha = 7;
  spec.d = 0.4;
  spec.omega = 5;
  spec.delta = 0.2;
  spec.beta = 0.3;
  spec.x = 0.9;
  spec.min_gain = 0.05;
  spec.cooldown_supersteps = 11;
  spec.max_moves_per_wave = 2;
  spec.horizon = crds::Horizon::kSuperstep;
  spec.heuristic = crds::Heuristic::kPercentage;
  decide::Params p = make_params(spec);
  EXPECT_EQ(p.alpha0, 7u);
  EXPECT_DOUBLE_EQ(p.d0, 0.4);
  EXPECT_EQ(p.omega, 5u);
  EXPECT_DOUBLE_EQ(p.delta, 0.2);
  EXPECT_DOUBLE_EQ(p.beta, 0.3);
  EXPECT_DOUBLE_EQ(p.x, 0.9);
  EXPECT_DOUBLE_EQ(p.min_gain, 0.05);
  EXPECT_EQ(p.cooldown, 11u);
  EXPECT_EQ(p.max_moves, 2u);
  EXPECT_EQ(p.horizon, decide::Horizon::kSuperstep);
  EXPECT_EQ(p.heuristic, decide::Heuristic::kPercentage);
  EXPECT_TRUE(p.migrates);
  EXPECT_FALSE(p.reuse_vacated_slots);
  spec.mode = crds::ReschedulingMode::kAdvise;
  EXPECT_FALSE(make_params(spec).migrates) << "so that D grows while nothing moves";
  using H = crds::Heuristic;
  using D = decide::Heuristic;
  for (const auto& [ours, theirs] : {std::pair{H::kTop, D::kTop},
                                     {H::kAutoMig, D::kAutoMig},
                                     {H::kMigCube, D::kMigCube},
                                     {H::kMigHull, D::kMigHull},
                                     {H::kBottleneck, D::kBottleneck},
                                     {H::kAuto, D::kAuto}}) {
    spec.heuristic = ours;
    EXPECT_EQ(make_params(spec).heuristic, theirs);
  }
}

}  // namespace
}  // namespace bsp::observe
