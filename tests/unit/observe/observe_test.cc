// From reports to a snapshot: what the collector puts together, what the calibration recovers from noisy records, what
// it says of values that were never measured, and what the snapshot makes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <random>
#include <set>

#include "operator/decide/columns.h"
#include "operator/observe/collector.h"
#include "operator/observe/snapshot.h"

namespace bsp::observe {
namespace {

using crds::CalibrationSource;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// --- Collector -------------------------------------------------------------------------------------------------
wire::SuperstepReport step(std::uint64_t superstep) {
  wire::SuperstepReport s;
  s.superstep = superstep;
  s.instructions = superstep * 1000;
  s.compute_ns = 2'000'000'000;
  s.comm_ns = 300'000'000;
  s.edge_ns = 200'000'000;
  return s;
}
wire::RankReport report(std::uint32_t rank, std::vector<std::uint64_t> supersteps, std::uint64_t memory = 0) {
  wire::RankReport r;
  r.rank = rank;
  r.memory_bytes = memory;
  for (std::uint64_t s : supersteps) r.supersteps.push_back(step(s)), r.completed = s;
  return r;
}
std::vector<std::uint64_t> take_all(Collector& c) {
  std::vector<std::uint64_t> taken;
  while (auto s = c.take()) taken.push_back(s->superstep.value);
  return taken;
}

TEST(Collector, ASuperstepIsWholeWhenAllRanksHaveReportedIt) {
  Collector c(3, 2);
  c.add(report(0, {1, 2}));
  c.add(report(1, {1}));
  EXPECT_FALSE(c.take());
  EXPECT_EQ(c.completed(2), 0u);
  c.add(report(2, {1, 2, 3}));
  EXPECT_THAT(take_all(c), ElementsAre(1));
  EXPECT_EQ(c.completed(2), 3u);
  c.add(report(1, {2}));
  EXPECT_THAT(take_all(c), ElementsAre(2));
}

TEST(Collector, WhatOneRankLostIsSkippedByAll) {
  Collector c(2, 1);
  c.add(report(0, {1, 2, 3, 4, 5, 6}));
  c.add(report(1, {3, 5, 6}));
  EXPECT_THAT(take_all(c), ElementsAre(3, 5, 6));
  c.add(report(1, {1, 2, 4}));  // too late
  EXPECT_THAT(take_all(c), IsEmpty());
}

TEST(Collector, AsksForWhatItDoesNotHave) {
  Collector c(2, 1);
  EXPECT_EQ(c.since(0), 0u);
  c.add(report(0, {1, 2, 3}));
  c.add(report(1, {1}));
  EXPECT_EQ(c.since(0), 3u);
  EXPECT_EQ(c.since(1), 1u);
  take_all(c);
  EXPECT_EQ(c.since(1), 1u);
  c.skip_to(10);
  EXPECT_EQ(c.since(0), 10u);
  c.add(report(0, {9, 10, 11}));
  c.add(report(1, {9, 10, 11}));
  EXPECT_THAT(take_all(c), ElementsAre(11));
}

TEST(Collector, FieldsAndUnits) {
  Collector c(2, 3);
  wire::RankReport a = report(0, {7}, 1234), b = report(1, {7});
  a.supersteps[0].recv_bytes = {10, 20};  // trailing zeros are cut
  a.supersteps[0].recv_ns = {1'000'000'000, 0, 500'000'000};
  b.supersteps[0].edge_ns = 0;
  b.supersteps[0].compute_ns = 4'000'000'000;
  b.supersteps[0].recv_bytes = {1, 2, 3, 4};  // a Set that is none of ours
  c.add(a);
  c.add(b);
  const auto s = c.take();
  ASSERT_TRUE(s);
  EXPECT_EQ(s->superstep.value, 7u);
  EXPECT_THAT(s->instructions, ElementsAre(7000, 7000));
  EXPECT_THAT(s->compute_seconds, ElementsAre(2, 4));
  EXPECT_DOUBLE_EQ(s->communication_seconds, 0.3) << "of the rank that came last";
  EXPECT_EQ((s->recv_bytes[0, 1]), 20);
  EXPECT_EQ((s->recv_bytes[0, 2]), 0);
  EXPECT_EQ((s->recv_bytes[1, 2]), 3);
  EXPECT_DOUBLE_EQ((s->recv_seconds[0, 0]), 1);
  EXPECT_DOUBLE_EQ((s->recv_seconds[0, 2]), 0.5);
  EXPECT_EQ(c.memory_bytes(0), 1234u);
  EXPECT_EQ(c.memory_bytes(1), 0u);
  ASSERT_THAT(c.history(), SizeIs(1));
  const SuperstepTimes& t = c.history().front();
  EXPECT_DOUBLE_EQ(t.seconds, (2.5 + 4.3) / 2);
  EXPECT_DOUBLE_EQ(t.imbalance, 4.3 / 3.3 - 1) << "2.3 s and 4.3 s: the shared phase of 0.3 s counts for both";
}

TEST(Collector, UnknownRanksAreIgnoredAndHistoryIsBounded) {
  Collector c(1, 1);
  c.add(report(1, {1}));
  EXPECT_FALSE(c.take());
  for (std::uint64_t t = 1; t <= Collector::kHistory + 50; ++t) {
    c.add(report(0, {t}));
    ASSERT_TRUE(c.take());
  }
  EXPECT_EQ(c.history().size(), Collector::kHistory);
  EXPECT_EQ(c.history().front().superstep, 51u);
}

// Reports in any order, doubled, some lost: every superstep comes at most once, in order, and each that all ranks
// reported before a later one was taken comes.
// Rank 1 is silent for long, or never was: what it can still deliver is the last 256, and no more of rank 0 is held.
TEST(Collector, WhatWaitsForASilentRankIsBounded) {
  Collector c(2, 1);
  for (std::uint64_t s = 1; s <= 10'000; ++s) {
    wire::RankReport one = report(0, {s});
    one.supersteps[0].recv_bytes = std::vector<std::uint64_t>(64, 1);
    c.add(one);
  }
  EXPECT_FALSE(c.take());
  EXPECT_EQ(c.since(0), 10'000u);
  std::vector<std::uint64_t> last;
  for (std::uint64_t s = 9'700; s <= 10'000; ++s) last.push_back(s);
  c.add(report(1, last));
  std::vector<std::uint64_t> taken;
  while (const auto step = c.take()) taken.push_back(step->superstep.value);
  ASSERT_EQ(taken.size(), wire::kMostRecords);
  EXPECT_EQ(taken.front(), 9'745u);
  EXPECT_EQ(taken.back(), 10'000u);
}

// --- Sampling --------------------------------------------------------------------------------------------------
// What a round of requests to all ranks finds, until the sample has settled.
std::uint64_t settled(std::size_t ranks, std::uint64_t supersteps_in_a_round) {
  Sampling s(ranks);
  for (int round = 0; round < 100; ++round) {
    for (std::size_t i = 0; i < ranks; ++i) s.completed(supersteps_in_a_round);
    s.begin_round();
  }
  return s.every();
}

TEST(Sampling, AsksForWhatCanBeRead) {
  EXPECT_EQ(settled(4, 100), 1u);
  EXPECT_EQ(settled(1000, 5), 1u);
  EXPECT_EQ(settled(1000, 50), 8u) << "5 ms";
  EXPECT_EQ(settled(10'000, 1), 1u) << "each of long supersteps";
  EXPECT_EQ(settled(10'000, 5), 4u);
}

TEST(Sampling, IsWiderWhileRanksAreAskedTooRarely) {
  Sampling s(10);
  const auto turn = [&](std::uint64_t supersteps) {
    for (int i = 0; i < 10; ++i) s.completed(supersteps);
    s.begin_round();
  };
  for (int i = 0; i < 8; ++i) turn(200);
  const std::uint64_t wide = s.every();
  EXPECT_GE(wide, 4u) << "of a ring of 256, half was new";
  EXPECT_LE(wide, 16u) << "what was requested before a change says nothing about it";
  for (int i = 0; i < 100; ++i) turn(1);
  EXPECT_EQ(s.every(), 1u);
}

TEST(Sampling, OneRankThatClaimsMuchChangesNothing) {
  Sampling s(100);
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 99; ++i) s.completed(1);
    s.completed(1ull << 40);
    s.begin_round();
  }
  EXPECT_EQ(s.every(), 1u);
}

TEST(Sampling, TheSampleHasNoPeriodAndHoldsThoseOfItsMultiples) {
  for (const std::uint64_t every : {1, 2, 8, 64}) {
    std::uint64_t in_it = 0;
    std::set<std::uint64_t> phases;  // of a program whose work recurs every 64 supersteps
    for (std::uint64_t t = 1; t <= 1'000'000; ++t) {
      if (!wire::sampled(t, every)) continue;
      ++in_it;
      phases.insert(t % 64);
      EXPECT_TRUE(wire::sampled(t, every / 2));
    }
    EXPECT_NEAR(static_cast<double>(in_it), 1e6 / static_cast<double>(every), 5e4 / static_cast<double>(every))
        << every;
    EXPECT_EQ(phases.size(), 64u) << every;
  }
}

TEST(Collector, AnyOrderOfReportsGivesEachSuperstepOnce) {
  EXPECT_TRUE(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 5);
    Collector c(ranks, 1);
    std::vector<std::set<std::uint64_t>> collected(ranks);
    std::uint64_t last = 0;
    const auto reports = *rc::gen::container<std::vector<std::pair<std::uint32_t, std::uint64_t>>>(
        rc::gen::pair(rc::gen::inRange<std::uint32_t>(0, ranks), rc::gen::inRange<std::uint64_t>(1, 12)));
    for (const auto& [rank, superstep] : reports) {
      c.add(report(rank, {superstep}));
      if (superstep > last) collected[rank].insert(superstep);
      while (auto s = c.take()) {
        RC_ASSERT(s->superstep.value > last);
        last = s->superstep.value;
        for (const auto& t : collected) RC_ASSERT(t.contains(last));
      }
      for (std::uint64_t t = last + 1; t < 12; ++t)
        RC_ASSERT(!std::ranges::all_of(collected, [&](const auto& have) { return have.contains(t); }));
    }
  }));
}

TEST(MeanTimes, OfTheSuperstepsBetween) {
  std::deque<SuperstepTimes> history;
  for (std::uint64_t t = 1; t <= 5; ++t)
    history.push_back({.superstep = t,
                       .seconds = static_cast<double>(t),
                       .imbalance = 0,
                       .compute_seconds = {1.0 * static_cast<double>(t), 2},
                       .instructions = {}});
  const auto mean = mean_times(history, 2, 4);
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->supersteps, 3u);
  EXPECT_DOUBLE_EQ(mean->seconds, 3);
  EXPECT_THAT(mean->compute_seconds, ElementsAre(3, 2));
  EXPECT_FALSE(mean_times(history, 6, 9));
  EXPECT_FALSE(mean_times({}, 0, 9));
}

// --- Calibration -----------------------------------------------------------------------------------------------
SuperstepTimes times(std::vector<double> instructions, std::vector<double> compute_seconds) {
  SuperstepTimes t;
  t.instructions = std::move(instructions);
  t.compute_seconds = std::move(compute_seconds);
  return t;
}
const std::map<std::string, double> kNominal{{"fast", 1.0}, {"slow", 0.25}};

TEST(Calibration, NothingMeasuredIsAllAssumed) {
  const Calibration c;
  EXPECT_DOUBLE_EQ(c.cpu("fast", kNominal).value, 1e9);
  EXPECT_DOUBLE_EQ(c.cpu("slow", kNominal).value, 0.25e9);
  EXPECT_FALSE(c.cpu("fast", kNominal).measured);
  EXPECT_DOUBLE_EQ(c.cpu("unheard-of", {}).value, 1e9);
  EXPECT_DOUBLE_EQ(c.seconds_per_byte("slow", "fast").value, 1 / 300e6);
  EXPECT_FALSE(c.seconds_per_byte("slow", "fast").measured);
  EXPECT_DOUBLE_EQ(c.fixed("fast").value, 0.3);
  EXPECT_FALSE(c.fixed("fast").measured);
  const auto values = c.to_status(kNominal);
  ASSERT_THAT(values, SizeIs(4));  // two Sets' speeds, a bandwidth, a fixed cost
  for (const auto& f : values) {
    EXPECT_EQ(f.source, CalibrationSource::kAssumed);
    EXPECT_EQ(f.samples, 0u);
    EXPECT_EQ(f.unit, f.name == "cpu" ? "instructions/s" : f.name == "bandwidth" ? "bytes/s" : "s");
  }
}

TEST(Calibration, AMeasuredSetSpeaksForTheOthersByNominalSpeed) {
  Calibration c;
  c.add_superstep(times({3e9, 1e9}, {1, 1}), {"fast", "fast"});
  EXPECT_TRUE(c.cpu("fast", kNominal).measured);
  EXPECT_DOUBLE_EQ(c.cpu("fast", kNominal).value, 2e9) << "of all its ranks together";
  EXPECT_FALSE(c.cpu("slow", kNominal).measured);
  EXPECT_DOUBLE_EQ(c.cpu("slow", kNominal).value, 0.5e9);
  c.add_superstep(times({1e9}, {1}), {"slow"});
  EXPECT_TRUE(c.cpu("slow", kNominal).measured);
  EXPECT_DOUBLE_EQ(c.cpu("slow", kNominal).value, 1e9) << "what is measured counts, not what was promised";
  EXPECT_DOUBLE_EQ(c.cpu("new", {{"new", 2}, {"fast", 1}, {"slow", 0.25}}).value, (4e9 + 8e9) / 2);
}

TEST(Calibration, NothingComputedSaysNothing) {
  Calibration c;
  c.add_superstep(times({0, 5}, {1, 0}), {"slow", "fast"});
  c.add_superstep(times({}, {}), {"slow", "fast"});
  EXPECT_FALSE(c.cpu("slow", kNominal).measured);
  EXPECT_FALSE(c.cpu("fast", kNominal).measured);
}

// Four ranks in two Sets, 10 % of noise on every time: the speeds come out within 2 %.
TEST(Calibration, SpeedsAreRecoveredFromNoisyRecords) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(1, 0.1);
    Calibration c;
    const std::vector<std::string> sets{"slow", "fast", "fast", "fast"};
    for (int t = 0; t < 400; ++t) {
      std::vector<double> instructions, seconds;
      for (const std::string& set : sets) {
        instructions.push_back(1e8 * (1 + t % 3));
        seconds.push_back(instructions.back() / (set == "slow" ? 0.4e9 : 2.2e9) * std::max(0.5, noise(random)));
      }
      c.add_superstep(times(instructions, seconds), sets);
    }
    // 1/(1+ε) is larger than 1 in the mean by its variance.
    EXPECT_NEAR(c.cpu("slow", {}).value / 0.4e9, 1.01, 0.07) << seed;
    EXPECT_NEAR(c.cpu("fast", {}).value / 2.2e9, 1.00, 0.05) << seed;
  }
}

TEST(Calibration, FirstAPlainMeanThenAnAgingOne) {
  Calibration c;
  for (double rate : {1e9, 2e9, 3e9}) c.add_superstep(times({rate}, {1}), {"s"});
  EXPECT_DOUBLE_EQ(c.cpu("s", {}).value, 2e9);
  for (int i = 0; i < 100; ++i) c.add_superstep(times({6e9}, {1}), {"s"});
  EXPECT_NEAR(c.cpu("s", {}).value, 6e9, 0.01e9) << "a speed that changed is followed";
}

TEST(Calibration, OneOutlierHardlyCounts) {
  for (const double wrong : {1e-6, 1e6}) {
    Calibration c;
    for (int i = 0; i < 50; ++i) c.add_superstep(times({1e9}, {1}), {"s"});
    c.add_superstep(times({1e9 * wrong}, {1}), {"s"});
    EXPECT_NEAR(c.cpu("s", {}).value / 1e9, 1, 0.31) << wrong;
    for (int i = 0; i < 30; ++i) c.add_superstep(times({1e9}, {1}), {"s"});
    EXPECT_NEAR(c.cpu("s", {}).value / 1e9, 1, 0.02) << wrong;
  }
}

TEST(Calibration, OneInTwentyOutliersLeaveTheSpeedInPlace) {
  std::mt19937 random(7);
  Calibration c;
  for (int t = 1; t <= 400; ++t) {
    const double rate = t % 20 == 0 ? (random() % 2 ? 1e15 : 1e3) : 1e9;
    c.add_superstep(times({rate}, {1}), {"s"});
  }
  EXPECT_NEAR(c.cpu("s", {}).value / 1e9, 1, 0.35);
}

TEST(Calibration, AMoveShowsBandwidthAndFixedCost) {
  Calibration c;
  c.add_move("slow", "fast", 100'000'000, {.total_ms = 900, .transfer_ms = 500});
  EXPECT_TRUE(c.seconds_per_byte("slow", "fast").measured);
  EXPECT_DOUBLE_EQ(c.seconds_per_byte("slow", "fast").value, 5e-9);
  EXPECT_TRUE(c.seconds_per_byte("fast", "slow").measured) << "a link has two directions";
  EXPECT_FALSE(c.seconds_per_byte("slow", "other").measured);
  EXPECT_DOUBLE_EQ(c.seconds_per_byte("slow", "other").value, 5e-9) << "better than an assumption";
  EXPECT_TRUE(c.fixed("fast").measured);
  EXPECT_NEAR(c.fixed("fast").value, 0.4, 1e-9);
  EXPECT_FALSE(c.fixed("slow").measured);
  EXPECT_NEAR(c.fixed("slow").value, 0.4, 1e-9);
  // A transfer that overlapped all of the pause leaves no fixed cost, not a negative one.
  c = {};
  c.add_move("slow", "fast", 100'000'000, {.total_ms = 300, .transfer_ms = 500});
  EXPECT_DOUBLE_EQ(c.fixed("fast").value, 0);
  EXPECT_TRUE(c.fixed("fast").measured);
  // The target's clock is five minutes ahead of the source's: no move would ever pay again.
  c = {};
  c.add_move("slow", "fast", 100'000'000, {.total_ms = 300'900, .transfer_ms = 500});
  EXPECT_LT(c.fixed("fast").value, 2);
}

TEST(Calibration, AnUnfinishedMoveBoundsTheBandwidth) {
  Calibration c;
  c.add_late_move("slow", "fast", 10'000'000, 6);
  EXPECT_FALSE(c.seconds_per_byte("slow", "fast").measured) << "10 MB are no matter of bandwidth";
  c.add_late_move("slow", "fast", 1'000'000'000, 50);
  EXPECT_TRUE(c.seconds_per_byte("slow", "fast").measured);
  EXPECT_DOUBLE_EQ(1 / c.seconds_per_byte("slow", "fast").value, 20e6);
  c.add_late_move("slow", "fast", 1'000'000'000, 40);
  EXPECT_DOUBLE_EQ(1 / c.seconds_per_byte("slow", "fast").value, 20e6) << "25 MB/s at most: known";
  c.add_late_move("slow", "fast", 1'000'000'000, 100);
  EXPECT_DOUBLE_EQ(1 / c.seconds_per_byte("slow", "fast").value, 10e6);
}

TEST(Calibration, AMoveWithoutMeasurementsIsIgnored) {
  Calibration c;
  c.add_move("slow", "fast", 0, {});
  EXPECT_FALSE(c.seconds_per_byte("slow", "fast").measured);
  EXPECT_FALSE(c.fixed("fast").measured);
}

TEST(Calibration, BandwidthAndFixedCostAreRecoveredFromNoisyMoves) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(1, 0.1);
  Calibration c;
  for (int i = 0; i < 60; ++i) {
    const double bytes = 1e6 * (10 + i % 50);
    const double transfer = bytes / 80e6 * noise(random);
    c.add_move("a", "b", static_cast<std::uint64_t>(bytes),
               {.total_ms = (transfer + 0.2 * noise(random)) * 1e3, .transfer_ms = transfer * 1e3});
  }
  EXPECT_NEAR(c.seconds_per_byte("a", "b").value, 1 / 80e6, 0.1 / 80e6);
  EXPECT_NEAR(c.fixed("b").value, 0.2, 0.05);
}

TEST(Calibration, IsTakenUpAgainFromTheStatus) {
  Calibration c;
  for (int i = 0; i < 5; ++i) c.add_superstep(times({1e9 + i}, {1}), {"fast"});
  c.add_move("slow", "fast", 100'000'000, {.total_ms = 900, .transfer_ms = 500});
  const auto values = c.to_status(kNominal);
  Calibration again = Calibration::from_status(values);
  const auto same = again.to_status(kNominal);
  ASSERT_EQ(same.size(), values.size());
  for (std::size_t i = 0; i < same.size(); ++i) {
    EXPECT_EQ(same[i].name, values[i].name);
    EXPECT_EQ(same[i].set, values[i].set);
    EXPECT_EQ(same[i].to_set, values[i].to_set);
    EXPECT_DOUBLE_EQ(same[i].value, values[i].value);
    EXPECT_EQ(same[i].source, values[i].source);
    EXPECT_EQ(same[i].samples, values[i].samples);
  }
  // It goes on averaging where it was, and an assumption read back is still one.
  c.add_superstep(times({7e9}, {1}), {"fast"});
  again.add_superstep(times({7e9}, {1}), {"fast"});
  EXPECT_DOUBLE_EQ(again.cpu("fast", {}).value, c.cpu("fast", {}).value);
  EXPECT_FALSE(again.cpu("slow", kNominal).measured);
}

// --- Snapshot --------------------------------------------------------------------------------------------------
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
  c.add_superstep(times({3e9}, {1}), {"fast"});
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

TEST(Snapshot, RanksWithAllThatDecidesOverThem) {
  const decide::Snapshot s =
      make_snapshot(make_platform({"slow", "fast"}, nodes(), {}),
                    {{.node = "slow-1", .memory_bytes = 5e6, .last_move = 17, .blocked_reason = "a window"},
                     {.node = "fast-0", .blocked_reason = ""}});
  ASSERT_THAT(s.ranks, SizeIs(2));
  EXPECT_EQ(s.ranks[0].processor.value, 2u);
  EXPECT_DOUBLE_EQ(s.ranks[0].memory_bytes, 5e6);
  EXPECT_EQ(s.ranks[0].last_move.value, 17u);
  EXPECT_EQ(s.ranks[0].not_migratable, "a window");
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
