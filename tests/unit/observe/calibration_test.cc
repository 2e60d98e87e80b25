// What the calibration recovers from noisy records, and what it says of values that were never measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "operator/observe/snapshot.h"

namespace bsp::observe {
namespace {

using crds::CalibrationSource;
using ::testing::SizeIs;

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

TEST(Calibration, FirstAMedianThenAnAgingMean) {
  Calibration c;
  for (double rate : {1e9, 2e9, 4e9}) c.add_superstep(times({rate}, {1}), {"s"});
  EXPECT_DOUBLE_EQ(c.cpu("s", {}).value, 2e9);
  for (int i = 0; i < 100; ++i) c.add_superstep(times({6e9}, {1}), {"s"});
  EXPECT_NEAR(c.cpu("s", {}).value, 6e9, 0.01e9) << "a speed that changed is followed";
}

// Also where a Set has too few nodes for a median over them, and after a restart of the operator in between.
TEST(Calibration, ASlowFirstSuperstepIsLeftOut) {
  for (const bool restarts : {false, true}) {
    Calibration c;
    for (int i = 0; i < 4; ++i) {
      c.add_superstep(times({1e9}, {i == 0 ? 10.0 : 1.0}), {"s"});
      if (i == 2 && restarts) c = Calibration::from_status(c.to_status({{"s", 1}}));
    }
    EXPECT_DOUBLE_EQ(c.cpu("s", {}).value, 1e9) << restarts;
  }
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

// As in the fractal compression while a rank's part of the picture is sky: under a CPU quota a burst runs at full speed.
TEST(Calibration, ARankWithHardlyAnyWorkSaysNothingOfItsNodesSpeed) {
  const std::vector<std::string> sets{"slow", "slow", "fast", "fast", "fast", "fast"},
      nodes{"slow-0", "slow-1", "fast-0", "fast-1", "fast-2", "fast-3"};
  const std::vector<double> rates{0.2e9, 1e9, 0.4e9, 1e9, 1e9, 1e9}, seconds{0.3, 0.001, 0.2, 0.001, 0.001, 0.001};
  std::vector<double> instructions;
  for (std::size_t i = 0; i < rates.size(); ++i) instructions.push_back(rates[i] * seconds[i]);
  Calibration c;
  for (int t = 0; t < 20; ++t) c.add_superstep(times(instructions, seconds), sets, nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    EXPECT_DOUBLE_EQ(c.cpu_of_node(nodes[i], sets[i], {}).value, sets[i] == "slow" ? 0.2e9 : 0.4e9) << nodes[i];
}

// As while LAMMPS or pw.x starts: hundreds of supersteps of 0.1 ms, which no CPU quota slows down.
TEST(Calibration, SuperstepsOfNextToNoWorkSayNothingOfASpeed) {
  const std::vector<std::string> sets{"slow", "fast"}, nodes{"slow-0", "fast-0"};
  Calibration c;
  c.add_superstep(times({1e5}, {1e-4}), {"left"}, {"left-0"});
  for (int t = 0; t < 20; ++t) c.add_superstep(times({1e5, 1e5}, {1e-4, 1e-4}), sets, nodes);
  EXPECT_DOUBLE_EQ(c.cpu("fast", {}).value, 1e9) << "nothing better is known";
  const auto work = [&] { c.add_superstep(times({4e7, 4e7}, {0.4, 0.2}), sets, nodes); };
  work();
  EXPECT_TRUE(c.told());
  for (int t = 0; t < 8; ++t) {
    EXPECT_DOUBLE_EQ(c.cpu("fast", {}).value, 2e8) << t;
    EXPECT_DOUBLE_EQ(c.cpu("slow", {}).value, 1e8) << t;
    EXPECT_DOUBLE_EQ(c.cpu_of_node("fast-0", "fast", {}).value, 2e8) << t;
    c.add_superstep(times({1e5, 1e5}, {1e-4, 1e-4}), sets, nodes);
    EXPECT_FALSE(c.told()) << t;
    work();
  }
  EXPECT_DOUBLE_EQ(c.cpu("left", {}).value, 1e9) << "no rank is there that could measure it";
}

TEST(Calibration, ASuperstepThatWasHeldUpIsNoNewBeginning) {
  const std::vector<std::string> sets{"slow", "fast"}, nodes{"slow-0", "fast-0"};
  Calibration c;
  for (int t = 0; t < 20; ++t) c.add_superstep(times({4e7, 4e7}, {0.4, 0.2}), sets, nodes);
  c.add_superstep(times({4e7, 4e7}, {0.4, 40}), sets, nodes);
  EXPECT_GT(c.cpu("fast", {}).value, 0.9 * 2e8);
}

TEST(Calibration, ASetOfIdleRanksIsMeasuredOnce) {
  Calibration c;
  for (int t = 0; t < 20; ++t)
    c.add_superstep(times({0.2e9, t < 10 ? 0.001e9 : 0.4e9}, {1, t < 10 ? 0.002 : 1}), {"slow", "fast"});
  EXPECT_TRUE(c.cpu("fast", {}).measured);
  EXPECT_NEAR(c.cpu("fast", {}).value, 0.4e9, 0.02e9) << "what it does with work counts more";
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
  // Closing the epoch is part of what a move costs.
  c = {};
  c.add_move("slow", "fast", 0, {.total_ms = 3000, .close_ms = 1500});
  EXPECT_DOUBLE_EQ(c.fixed("fast").value, 3);
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
  const auto calibrated =
      c.to_status(kNominal, {{"fast", CalibrationSource::kCounted}, {"slow", CalibrationSource::kCalibrated}});
  EXPECT_EQ(calibrated[0].source, CalibrationSource::kCounted);
  EXPECT_EQ(calibrated[1].source, CalibrationSource::kCalibrated) << "no rank has run there";
  EXPECT_FALSE(Calibration::from_status(calibrated).cpu("slow", kNominal).measured);
  EXPECT_EQ(c.to_status(kNominal, {{"slow", CalibrationSource::kCounted}})[1].source, CalibrationSource::kAssumed);
  // It goes on averaging where it was, and an assumption read back is still one.
  c.add_superstep(times({7e9}, {1}), {"fast"});
  again.add_superstep(times({7e9}, {1}), {"fast"});
  EXPECT_DOUBLE_EQ(again.cpu("fast", {}).value, c.cpu("fast", {}).value);
  EXPECT_FALSE(again.cpu("slow", kNominal).measured);
}

// `ranks` in "fast" that each hear `bytes` from "slow", in `seconds`.
decide::MeasuredSuperstep traffic(std::size_t ranks, double bytes, double seconds) {
  decide::MeasuredSuperstep t;
  decide::Grid<double> B(ranks, 2), BT(ranks, 2);
  for (std::size_t i = 0; i < ranks; ++i) B[i, 1] = bytes, BT[i, 1] = seconds;
  t.recv_bytes = B, t.recv_seconds = BT;
  return t;
}

TEST(Calibration, ALinkThatAllRanksShareIsKnownByWhatItCarries) {
  const std::vector<std::string> sets{"fast", "slow"}, in_fast(4, "fast");
  Calibration c;
  const auto see = [&](double seconds) {
    for (int n = 0; n < 9; ++n) c.add_traffic(traffic(4, 1e6, seconds), sets, in_fast);
  };
  see(0.02);
  EXPECT_EQ(c.capacity("slow", "fast"), 0) << "the bandwidth of one rank is only assumed";
  c.add_move("slow", "fast", 100'000'000, {.total_ms = 900, .transfer_ms = 500});  // 200 MB/s
  see(0.005);
  EXPECT_EQ(c.capacity("slow", "fast"), 0) << "each rank was as quick as one alone";
  see(0.02);
  EXPECT_DOUBLE_EQ(c.capacity("slow", "fast"), 4e6 / 0.005) << "it has carried so much";
  EXPECT_EQ(c.capacity("fast", "slow"), 0) << "nothing went there";

  const decide::Platform p = make_platform(sets, {}, c);
  EXPECT_DOUBLE_EQ((p.capacity[1, 0]), 8e8);
  EXPECT_EQ((p.capacity[0, 1]), 0);
  EXPECT_TRUE(make_platform(sets, {}, {}).capacity.empty());
  const Calibration again = Calibration::from_status(c.to_status(kNominal));
  EXPECT_DOUBLE_EQ(again.capacity("slow", "fast"), 8e8) << "a restarted operator knows it";
}

// Of supersteps of a millisecond a job has as many within fifty days.
TEST(Calibration, MoreSamplesThanANumberCountsAreStillAMean) {
  Calibration c =
      Calibration::from_status({{"cpu", "fast", "", 1e9, "instructions/s", CalibrationSource::kMeasured, UINT32_MAX}});
  for (int i = 0; i < 3; ++i) c.add_superstep(times({2e9}, {1}), {"fast"});
  EXPECT_TRUE(c.cpu("fast", {}).measured);
  EXPECT_GT(c.cpu("fast", {}).value, 1e9);
  EXPECT_LT(c.cpu("fast", {}).value, 2e9);
}

TEST(Calibration, TrafficThatFitsNoSetSaysNothing) {
  Calibration c;
  c.add_move("slow", "fast", 100'000'000, {.total_ms = 900, .transfer_ms = 500});
  for (int n = 0; n < 10; ++n) {
    c.add_traffic(traffic(4, 1e6, 0.1), {"fast", "slow"}, std::vector<std::string>(4, "new"));
    c.add_traffic(traffic(4, 1e6, 0.1), {"fast", "slow"}, std::vector<std::string>(3, "fast"));
    c.add_traffic({}, {"fast", "slow"}, std::vector<std::string>(4, "fast"));
  }
  EXPECT_EQ(c.capacity("slow", "fast"), 0);
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(
        Calibration::from_status({{"linkCapacity", "slow", "fast", bad, "bytes/s", CalibrationSource::kMeasured, 1}})
            .capacity("slow", "fast"),
        0);
}

}  // namespace
}  // namespace bsp::observe
