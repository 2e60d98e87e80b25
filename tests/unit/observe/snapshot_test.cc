// What the snapshot makes of a spec, nodes, ranks and measurements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "operator/decide/auto/auto.h"
#include "operator/decide/make_plan.h"
#include "operator/decide/model/columns.h"
#include "operator/observe/snapshot.h"

namespace bsp::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
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

std::vector<std::string> names(const decide::Snapshot& s) {
  std::vector<std::string> out;
  for (const decide::Processor& p : s.platform.processors) out.push_back(p.name);
  return out;
}

// The first call's plan, where ranks compute for so long in each superstep and don't communicate.
decide::Plan planned(const decide::Snapshot& s, const std::vector<double>& seconds, crds::Heuristic heuristic) {
  decide::Params params;
  decide::take_heuristic(params, heuristic);
  params.expected_supersteps = 1000;
  const std::size_t ranks = seconds.size(), sets = s.platform.sets.size();
  decide::Window window({}, params, ranks, sets);
  for (std::uint64_t t = 1; !window.call_due(); ++t)
    window.add({.superstep = {t},
                .instructions = std::vector<double>(ranks, 1e9),
                .compute_seconds = seconds,
                .recv_bytes = decide::Grid<double>(ranks, sets),
                .recv_seconds = decide::Grid<double>(ranks, sets)});
  auto plan = decide::make_plan(s, window, params);
  check(plan.has_value(), "the job can be decided");
  return *std::move(plan);
}

// Four ranks on one of two equal nodes with a core for each: none would be faster on the other one.
TEST(Snapshot, ASlotIsAProcessorSinceARankHasItToItself) {
  const std::vector<NodeFacts> equal{{.name = "a", .set = "s", .slots = 4}, {.name = "b", .set = "s", .slots = 6}};
  Calibration c;
  SuperstepTimes measured;
  measured.instructions = {1e9, 1e9, 1e9, 1e9};
  measured.compute_seconds = {1, 1, 1, 1};
  c.add_superstep(measured, {"s", "s", "s", "s"}, {"a", "a", "a", "a"});
  const decide::Snapshot s = make_snapshot(make_platform({"s"}, equal, c),
                                           std::vector<RankFacts>(4, {.node = "a", .blocked_reason = ""}), equal);
  EXPECT_THAT(names(s), ElementsAre("a", "a", "a", "a", "b", "b", "b", "b")) << "no more free ones than ranks";
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(s.ranks[i].processor.value, i);
    EXPECT_EQ(s.platform.processors[i].slots, 1u);
    EXPECT_EQ(s.platform.processors[i].taken, 0u);
  }
  for (const auto heuristic : {crds::Heuristic::kAuto, crds::Heuristic::kBottleneck, crds::Heuristic::kMigHull}) {
    const decide::Plan plan = planned(s, {1, 1, 1, 1}, heuristic);
    EXPECT_TRUE(plan.moves.empty()) << to_string(heuristic);
    EXPECT_DOUBLE_EQ(plan.forecast.before, 1) << to_string(heuristic);
  }
}

TEST(Snapshot, OfEqualSlotsARankGetsTheOneOnTheEmptiestNode) {
  const std::vector<NodeFacts> all{{.name = "a", .set = "fast", .slots = 4},
                                   {.name = "b", .set = "fast", .slots = 4, .taken = 1},
                                   {.name = "c", .set = "fast", .slots = 2},
                                   {.name = "d", .set = "slow"}};
  Calibration c;
  SuperstepTimes measured;
  measured.instructions = {1e9, 1e9, 1e9, 1e9};
  measured.compute_seconds = {1, 1, 1, 3};
  c.add_superstep(measured, {"fast", "fast", "fast", "slow"}, {"a", "a", "b", "d"});
  const decide::Snapshot s = make_snapshot(make_platform({"fast", "slow"}, all, c),
                                           {{.node = "a", .blocked_reason = ""},
                                            {.node = "a", .blocked_reason = ""},
                                            {.node = "b", .blocked_reason = ""},
                                            {.node = "d", .blocked_reason = ""}},
                                           all);
  for (const auto heuristic : {crds::Heuristic::kAuto, crds::Heuristic::kBottleneck, crds::Heuristic::kMigHull}) {
    const decide::Plan plan = planned(s, {1, 1, 1, 3}, heuristic);
    ASSERT_THAT(plan.moves, SizeIs(1)) << to_string(heuristic);
    EXPECT_EQ(s.platform.processor(plan.moves[0].to).name, "c") << to_string(heuristic);
  }
}

// Three ranks on a node that has CPU for two: each needs 1.5 times as long as alone.
TEST(Snapshot, RanksOnANodeWithTooLittleCpuShareIt) {
  const std::vector<NodeFacts> all{{.name = "a", .set = "s", .slots = 4, .at_full_speed = 2},
                                   {.name = "b", .set = "s", .slots = 4, .at_full_speed = 2.5}};
  EXPECT_THAT(slowed_by_each_other({"a", "a", "b", "a", "gone"}, all), ElementsAre(1.5, 1.5, 1, 1.5, 1));
  EXPECT_THAT(slowed_by_each_other({"b", "b", "b"}, all), ElementsAre(1.2, 1.2, 1.2));
  Calibration c;
  SuperstepTimes measured;
  measured.instructions = {1.5e9, 1.5e9, 1.5e9};
  measured.compute_seconds = {1.5, 1.5, 1.5};
  c.add_superstep(measured, {"s", "s", "s"}, {"a", "a", "a"});
  const decide::Snapshot s =
      make_snapshot(make_platform({"s"}, all, c), std::vector<RankFacts>(3, {.node = "a", .blocked_reason = ""}), all);
  EXPECT_THAT(names(s), ElementsAre("a", "b", "b"));
  EXPECT_DOUBLE_EQ(s.platform.processors[0].cpu, 2e9);
  EXPECT_DOUBLE_EQ(s.platform.processors[1].cpu, 1e9);
  const decide::Plan plan = planned(s, {1.5, 1.5, 1.5}, crds::Heuristic::kAuto);
  ASSERT_THAT(plan.moves, SizeIs(1));
  EXPECT_DOUBLE_EQ(plan.forecast.before, 1.5);
  EXPECT_DOUBLE_EQ(plan.forecast.after, 1);
}

TEST(Snapshot, SlotsOfOthersAndOfCordonedNodesAreNone) {
  const decide::Snapshot s = make_snapshot(make_platform({"slow", "fast"}, nodes(), {}),
                                           {{.node = "slow-0", .blocked_reason = ""},
                                            {.node = "fast-0", .blocked_reason = ""},
                                            {.node = "fast-0", .blocked_reason = ""}},
                                           nodes());
  EXPECT_THAT(names(s), ElementsAre("slow-0", "fast-0", "fast-0", "slow-1", "fast-0")) << "slow-1 is empty";
  EXPECT_TRUE(s.platform.processors[0].cordoned);
}

// Two ranks left node a for b, a third one has come to a since; one of the two has left c before.
TEST(Snapshot, ARankThatMovesAgainNeverGoesToANodeThatItLeft) {
  const std::vector<NodeFacts> all{{.name = "a", .set = "s", .slots = 3, .taken = 0},
                                   {.name = "b", .set = "s", .slots = 2},
                                   {.name = "c", .set = "s", .slots = 1, .taken = 1}};
  const decide::Snapshot s = make_snapshot(make_platform({"s"}, all, {}),
                                           {{.node = "b", .last_move = 9, .left = {"c", "a"}, .blocked_reason = ""},
                                            {.node = "b", .last_move = 9, .left = {"a", "gone"}, .blocked_reason = ""},
                                            {.node = "a", .last_move = 4, .left = {"d"}, .blocked_reason = ""}},
                                           all);
  const auto of = [&](const std::vector<ProcessorId>& left) {
    std::set<std::string> out;
    for (const ProcessorId p : left) out.insert(s.platform.processor(p).name);
    return out;
  };
  EXPECT_THAT(of(s.ranks[0].left), ElementsAre("a", "c"));
  EXPECT_THAT(of(s.ranks[1].left), ElementsAre("a"));
  EXPECT_THAT(s.ranks[2].left, IsEmpty()) << "a node that is no more";
  for (const std::uint32_t i : {0u, 1u})
    for (std::uint32_t p = 0; p < s.platform.processors.size(); ++p)
      EXPECT_TRUE(s.platform.processors[p].name != "a" || std::ranges::contains(s.ranks[i].left, ProcessorId{p}));
  const ProcessorId back[] = {s.ranks[0].left.back(), s.ranks[1].left.back()};
  EXPECT_NE(back[0], back[1]) << "both find a slot if the wave is taken back";
  for (const ProcessorId p : back) {
    EXPECT_EQ(s.platform.processor(p).name, "a");
    EXPECT_NE(p, s.ranks[2].processor);
    EXPECT_EQ(s.platform.processor(p).taken, 0u);
  }
  EXPECT_NE(s.ranks[0].left.front(), s.ranks[1].left.front());
  EXPECT_EQ(s.platform.processor(s.ranks[0].left.front()).taken, 1u) << "c's only slot is another pod's now";
  const auto read = decide::columns_of(s);
  EXPECT_TRUE(read) << read.error().message;
}

// Two ranks share pod p on a, where two seats are free besides; another one has its own.
TEST(Snapshot, PodsAndTheirFreeSeats) {
  const std::vector<NodeFacts> all{{.name = "a", .set = "s", .slots = 5}, {.name = "b", .set = "s", .slots = 2}};
  const std::vector<decide::Partner> partners{{{1}, 512}};
  RankFacts first{.node = "a", .blocked_reason = ""}, second = first, third{.node = "b", .blocked_reason = ""};
  first.pod = second.pod = "p", third.pod = "q";
  first.partners = partners, first.messages_per_byte = 0.25;
  const decide::Snapshot s = make_snapshot(make_platform({"s"}, all, {}), {first, second, third}, all,
                                           {{"a", {"p", "r"}}, {"b", {"q", "q", "q"}}, {"gone", {"p"}}});
  EXPECT_EQ(s.ranks[0].pod, s.ranks[1].pod);
  EXPECT_NE(s.ranks[0].pod, s.ranks[2].pod);
  EXPECT_NE(s.ranks[2].pod, 0u);
  EXPECT_EQ(s.ranks[0].partners[0].messages, 128);
  std::multiset<std::uint32_t> seats_of_a, seats_of_b;
  for (std::uint32_t p = 3; p < s.platform.processors.size(); ++p)
    (s.platform.processors[p].name == "a" ? seats_of_a : seats_of_b).insert(s.platform.processors[p].pod);
  EXPECT_EQ(seats_of_a.count(s.ranks[0].pod), 1u);
  EXPECT_EQ(seats_of_a.count(0), 1u) << "a slot without a seat";
  EXPECT_EQ(seats_of_a.size(), 3u);
  EXPECT_EQ(seats_of_b, std::multiset<std::uint32_t>{s.ranks[2].pod}) << "more seats than slots are none";
  EXPECT_TRUE(decide::columns_of(s));
}

// Two ranks left a, of whose two slots another pod has taken one since.
TEST(Snapshot, ASlotThatIsTakenIsNoWayBack) {
  const std::vector<NodeFacts> all{{.name = "a", .set = "s", .slots = 2, .taken = 1},
                                   {.name = "b", .set = "s", .slots = 2}};
  const RankFacts left_a{.node = "b", .last_move = 9, .left = {"a"}, .blocked_reason = ""};
  const decide::Snapshot s = make_snapshot(make_platform({"s"}, all, {}), {left_a, left_a}, all);
  std::multiset<std::uint32_t> taken;
  for (const decide::Rank& rank : s.ranks) {
    const decide::Processor& back = s.platform.processor(rank.left.back());
    EXPECT_EQ(back.name, "a");
    taken.insert(back.taken);
  }
  EXPECT_THAT(taken, ElementsAre(0, 1));
  EXPECT_TRUE(decide::columns_of(s));
}

TEST(Snapshot, RanksWithAllThatDecidesOverThem) {
  const std::vector<decide::Partner> partners{{{1}, 512}};
  const decide::Snapshot s = make_snapshot(
      make_platform({"slow", "fast"}, nodes(), {}),
      {{.node = "slow-1", .memory_bytes = 5e6, .last_move = 17, .blocked_reason = "a window", .partners = partners},
       {.node = "fast-0", .blocked_reason = "", .no_moves_to = {"slow", "gone"}}},
      nodes());
  ASSERT_THAT(s.ranks, SizeIs(2));
  EXPECT_THAT(s.ranks[1].no_moves_to, ElementsAre(SetId{0}));
  EXPECT_EQ(s.ranks[0].processor.value, 0u);
  EXPECT_DOUBLE_EQ(s.ranks[0].memory_bytes, 5e6);
  EXPECT_EQ(s.ranks[0].last_move.value, 17u);
  EXPECT_EQ(s.ranks[0].not_migratable, "a window");
  EXPECT_EQ(s.ranks[0].partners, partners);
  EXPECT_TRUE(s.ranks[1].partners.empty());
  EXPECT_EQ(s.set({1}).value, 1u);
  const auto read = decide::columns_of(s);
  EXPECT_TRUE(read) << read.error().message;
  const decide::Snapshot lost =
      make_snapshot(make_platform({"fast"}, nodes(), {}), {{.node = "slow-1", .blocked_reason = ""}}, nodes());
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
