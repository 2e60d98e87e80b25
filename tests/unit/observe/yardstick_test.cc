// The order in which a superstep's instructions become work, and what is learned of it on the way.
#include "operator/observe/yardstick.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bsp::observe {
namespace {

using nlohmann::json;

SuperstepTimes reported(std::vector<double> instructions, std::vector<double> seconds) {
  SuperstepTimes t;
  t.compute_seconds = std::move(seconds), t.instructions = std::move(instructions);
  return t;
}

const std::vector<NodeFacts> kOldAndNew{{.name = "old-0", .set = "old", .slots = 2},
                                        {.name = "new-0", .set = "new", .slots = 2}};

Places places(std::vector<std::string> sets) {
  Places p{.sets = std::move(sets), .nodes = {}, .alone = {}, .held_back = {}};
  for (const std::string& set : p.sets) p.nodes.push_back(set + "-0");
  p.alone.assign(p.sets.size(), 1);
  p.held_back.assign(p.sets.size(), 0);
  return p;
}

double speed_of(const Yardstick& yardstick, const std::string& set) {
  return yardstick.platform({set}, {{.name = set + "-0", .set = set, .slots = 1}}, {set}).processors.at(0).cpu;
}

TEST(Yardstick, CpuTimeIsWorthItsSetsFactorAndItsRanks) {
  const double c = 0.25;
  Yardstick yardstick({}, json::parse(R"([["new", 2.5]])"), json::parse("[[1, 0.25]]"), 3);
  yardstick.set_unit(WorkUnit::kCpuTime);
  const std::vector<double> work =
      yardstick.work_of(reported({1e9, 1e9, 4e9}, {1, 1, 4}), places({"old", "new", "new"}));
  ASSERT_EQ(work.size(), 3u);
  EXPECT_DOUBLE_EQ(work[0], 1e9);
  EXPECT_DOUBLE_EQ(work[1], 1e9 * 2.5 * std::exp(c));
  EXPECT_DOUBLE_EQ(work[2], 4e9 * 2.5);
  EXPECT_DOUBLE_EQ(speed_of(yardstick, "old"), 1e9) << "of work, not of CPU time";
  EXPECT_DOUBLE_EQ(speed_of(yardstick, "new"), (work[1] + work[2]) / 5);
}

TEST(Yardstick, CountedInstructionsAreNoMatterOfSlowNodes) {
  Yardstick yardstick({}, {}, {}, 3);
  yardstick.set_unit(WorkUnit::kInstructions);
  const Places at = places({"old", "old", "old"});
  for (int t = 0; t < 40; ++t) {
    const double more = t < 30 ? 1e9 : 3e9;  // of one rank, for good
    EXPECT_DOUBLE_EQ(yardstick.work_of(reported({more, 1e9, 1e9}, {more / 1e9, 1, 1}), at)[0], more);
  }
}

TEST(Yardstick, WhereNothingIsCountedASuddenlySlowRanksWorkStaysWhatItWas) {
  Yardstick yardstick({}, {}, {}, 4);
  yardstick.set_unit(WorkUnit::kCpuTime);
  Places at = places({"old", "old", "old", "old"});
  for (std::size_t i = 0; i < at.nodes.size(); ++i) at.nodes[i] += std::to_string(i);
  std::vector<double> work;
  for (int t = 0; t < 40; ++t) {
    const double more = t < 30 ? 1e9 : 3e9;
    work = yardstick.work_of(reported({more, 1e9, 1e9, 1e9}, {more / 1e9, 1, 1, 1}), at);
  }
  EXPECT_NEAR(work[0], 1e9, 1e7) << "its node is slow";
  EXPECT_DOUBLE_EQ(work[1], 1e9);
}

// A speed is that of a rank which nothing holds back; work is work all the same.
TEST(Yardstick, SpeedsAreThoseOfRanksAlone) {
  Yardstick yardstick({}, {}, {}, 2);
  yardstick.set_unit(WorkUnit::kInstructions);
  Places at = places({"old", "new"});
  at.alone = {2, 1};
  EXPECT_DOUBLE_EQ(yardstick.work_of(reported({1e9, 1e9}, {1, 1}), at)[0], 1e9);
  EXPECT_DOUBLE_EQ(speed_of(yardstick, "old"), 2e9);
  EXPECT_DOUBLE_EQ(speed_of(yardstick, "new"), 1e9);
}

TEST(Yardstick, NothingIsLearnedOfMixedUnits) {
  Yardstick yardstick({}, {}, json::parse("[[0, 0.3]]"), 2);
  yardstick.set_unit(WorkUnit::kMixed);
  EXPECT_DOUBLE_EQ(yardstick.work_of(reported({5e9, 1e9}, {1, 1}), places({"old", "new"}))[0], 5e9);
  EXPECT_DOUBLE_EQ(speed_of(yardstick, "old"), Calibration::kAssumedRate);
}

TEST(Yardstick, BenchmarksSettleTheUnitOfAllThatWasLearned) {
  Yardstick yardstick({}, {}, {}, 2);
  yardstick.set_unit(WorkUnit::kCpuTime);
  const Places at = places({"old", "new"});
  EXPECT_DOUBLE_EQ(yardstick.work_of(reported({1e9, 1e9}, {1, 1}), at)[1], 1e9);
  decide::Params params;
  yardstick.limit(params);
  EXPECT_TRUE(params.timed_work);
  const wire::CpuBenchmark slow{.model = "", .integer_ns = 300'000, .floating_ns = 300'000, .memory_ns = 300'000};
  const wire::CpuBenchmark fast{.model = "", .integer_ns = 100'000, .floating_ns = 100'000, .memory_ns = 100'000};
  yardstick.settle(at.sets, {{"old", "old-0", &slow}, {"new", "new-0", &fast}}, kOldAndNew);
  params = {};
  yardstick.limit(params);
  EXPECT_FALSE(params.timed_work);
  const std::vector<double> work = yardstick.work_of(reported({1e9, 1e9}, {1, 1}), at);
  EXPECT_NEAR(work[1] / work[0], 3, 0.5) << "the same CPU time is more work on the faster CPU";
  EXPECT_NEAR(speed_of(yardstick, "new") / speed_of(yardstick, "old"), work[1] / work[0], 1e-9);
  // A fresh operator goes on with the same.
  Yardstick again(yardstick.to_status(kOldAndNew, at.sets), yardstick.work_json(), yardstick.ranks_json(), 2);
  again.set_unit(WorkUnit::kCpuTime);
  EXPECT_DOUBLE_EQ(again.work_of(reported({1e9, 1e9}, {1, 1}), at)[1], work[1]);
}

TEST(Yardstick, OfAWavesMovesTheOneWithMostBytesCounts) {
  const std::vector<std::string> sets{"old", "new", "other"};
  const crds::PauseParts pause{.total_ms = 900, .transfer_ms = 500};
  Yardstick yardstick({}, {}, {}, 2);
  yardstick.add_moves(std::vector<Moved>{{.from = 0, .to = 1, .bytes = 10'000'000, .transfer_ms = 400},
                                         {.from = 0, .to = 1, .bytes = 100'000'000, .transfer_ms = 500},
                                         {.from = 2, .to = 1, .bytes = 50'000'000, .transfer_ms = 100}},
                      sets, pause);
  const decide::Platform p = yardstick.platform(sets, {}, {});
  EXPECT_DOUBLE_EQ((p.T[0, 1]), 5e-9) << "500 ms of 100 MB";
  EXPECT_DOUBLE_EQ((p.T[2, 1]), 2e-9) << "its own 100 ms";
  EXPECT_NEAR((p.Mig[0, 1]), 0.4, 1e-9) << "what waited for another's transfer is no fixed part";
  // An older operator's wave doesn't say which of the times is whose, but that of the most bytes.
  Yardstick older({}, {}, {}, 2);
  older.add_moves(
      std::vector<Moved>{{.from = 0, .to = 1, .bytes = 100'000'000}, {.from = 2, .to = 1, .bytes = 50'000'000}}, sets,
      pause);
  const decide::Platform q = older.platform(sets, {}, {});
  EXPECT_EQ((q.T_origin[0, 1]), decide::Origin::kMeasured);
  EXPECT_EQ((q.T_origin[2, 1]), decide::Origin::kAssumed);
}

}  // namespace
}  // namespace bsp::observe
