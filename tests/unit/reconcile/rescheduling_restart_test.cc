// What the scheduler stores, and the same decisions after any number of restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "base/core/significant.h"
#include "tests/unit/reconcile/rescheduling_fixture.h"

namespace bsp::reconcile {
namespace {

using crds::ReschedulingMode;
using ::testing::ElementsAre;

TEST_F(Rescheduling, StoresWhatTheStatusShows) {
  Rescheduler r = rescheduler();
  feed(r, 1, 3);
  store(r);
  EXPECT_EQ(o.job.status.alpha, 4u);
  EXPECT_DOUBLE_EQ(o.job.status.d, 0.5);
  EXPECT_NEAR(o.job.status.imbalance, 0.2, 1e-9);
  EXPECT_DOUBLE_EQ(o.job.status.ranks[0].compute_seconds, 2);
  EXPECT_DOUBLE_EQ(o.job.status.ranks[2].compute_seconds, 1);
  EXPECT_DOUBLE_EQ(o.job.status.ranks[2].time_seconds, 2);
  EXPECT_FALSE(o.job.status.predicted_gain_seconds);
  int measured = 0;
  for (const auto& entry : o.job.status.calibration)
    if (entry.name == "cpu" && entry.source != crds::CalibrationSource::kAssumed) {
      ++measured;
      EXPECT_DOUBLE_EQ(entry.value, entry.set == "slow" ? 5e8 : 1e9);
      EXPECT_EQ(entry.samples, 3u);
    }
  EXPECT_EQ(measured, 2);
  EXPECT_DOUBLE_EQ(r.superstep_seconds(), 2);
  const auto decided = feed(r, 4);
  store(r);
  EXPECT_EQ(o.job.status.alpha, decided->decision.alpha_next) << "of the window that begins";
  EXPECT_EQ(o.job.status.predicted_gain_seconds, significant(decided->predicted_gain_seconds, 6));
}

// A new operator for every superstep, which reads the status and requests all reports that the sidecars still have.
TEST_F(Rescheduling, RestartsChangeNoDecision) {
  o.job.spec.rescheduling.mode = ReschedulingMode::kAdvise;
  unpredictable = true;
  using Call = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, double, double>;
  auto call_of = [](const Decided& d) {
    return Call{d.decision.superstep.value, d.decision.alpha, d.decision.alpha_next, d.decision.d, d.decision.d_next};
  };
  std::vector<Call> without, with;
  Rescheduler steady = rescheduler();
  for (std::uint64_t t = 1; t <= 70; ++t)
    if (auto d = feed(steady, t)) without.push_back(call_of(*d));
  ASSERT_GE(without.size(), 4u);
  for (std::uint64_t t = 1; t <= 70; ++t) {
    Rescheduler fresh = rescheduler();
    if (auto d = feed(fresh, 1, t)) with.push_back(call_of(*d));
    store(fresh);
  }
  EXPECT_EQ(with, without);
  EXPECT_EQ(o.job.status.alpha, std::get<2>(without.back()));
  crds::BspJobStatus of_steady = o.job.status;
  steady.store(of_steady, o);
  EXPECT_EQ(of_steady.rescheduler, o.job.status.rescheduler);
  const auto from_fast = o.job.status.rescheduler["state"]["pFromSets"][0]["p"].get<std::string>();
  ASSERT_EQ(from_fast.size(), 3u);
  EXPECT_EQ(from_fast[0], '/') << "rank 0 receives from no rank";
  EXPECT_NE(from_fast[2], '/');
}

// The unit of work is kept, too, even if the sidecars say no more what it rests on.
TEST_F(Rescheduling, RestartsChangeNoUnitOfWork) {
  o.job.spec.rescheduling.mode = ReschedulingMode::kAdvise;
  time_and_benchmark();
  Rescheduler steady = rescheduler();
  const crds::BspJob before = o.job;
  for (std::uint64_t t = 1; t <= 12; ++t) feed(steady, t);
  store(steady);
  const auto wanted = o.job.status;
  o.job = before;
  for (std::uint64_t t = 1; t <= 12; ++t) {
    Rescheduler fresh = rescheduler();
    if (t == 6)
      for (auto& [seat, s] : o.sidecars) s.status->cpu.reset();
    feed(fresh, t);
    store(fresh);
  }
  for (const char* set : {"slow", "fast"}) {
    EXPECT_NEAR(calibrated("cpu", set)->value, set == std::string("slow") ? 5e8 : 2e9, 1);
    EXPECT_EQ(calibrated("cpu", set)->source, crds::CalibrationSource::kCalibrated);
    EXPECT_NEAR(calibrated("cpuBenchmark", set)->value, set == std::string("slow") ? 5000 : 10000, 1e-6);
  }
  EXPECT_EQ(o.job.status.calibration.size(), wanted.calibration.size());
}

TEST_F(Rescheduling, RestartsKeepWhatARanksInstructionsAreWorth) {
  const auto stored = nlohmann::json::parse(R"([[1, 0.693]])");
  counted_of_rank_1 = 500'000'000;
  o.job.status.rescheduler = {{"rankFactors", stored}};
  for (std::uint64_t t = 1; t <= 3; ++t) {
    Rescheduler fresh = rescheduler();
    feed(fresh, t);
    store(fresh);
    EXPECT_NEAR(calibrated("cpu", "slow")->value, 5e8, 1e5) << "as if both had counted as much";
    EXPECT_EQ(o.job.status.rescheduler["rankFactors"], stored);
  }
}

TEST_F(Rescheduling, ContinuesFromAnOlderOperatorsStatus) {
  const auto stored = nlohmann::json::parse(
      R"({"state": {"k": 5, "alpha": 4, "alphaNext": 2, "d": 0.25, "gamma": 1, "elapsed": 7.5, "owed": 0.5, "pComp": [1, 0.5, 0.75],
          "pCommBySet": [[], [[0, 0.25], [1, 0.5]], []]}, "waveSeen": 3, "counted": 12, "work": [["slow", "fast", 0.5, 3]],
          "baseline": {"wave": 4, "alpha": 4, "predicted": 1, "seconds": 2.5, "compute": [1.5, 2, 2.5], "after": 9}})");
  const SchedulerState read = scheduler_state_from_json(stored, 3, 2);
  EXPECT_EQ(
      read.window.cadence,
      (decide::Cadence{.k = {5}, .alpha = 4, .alpha_next = 2, .d = 0.25, .gamma = 1, .elapsed = 7.5, .owed = 0.5}));
  EXPECT_THAT(read.window.P_comp, ElementsAre(1, 0.5, 0.75));
  EXPECT_EQ((read.window.P_comm[1, 0]), 0.25);
  EXPECT_EQ((read.window.P_comm[1, 1]), 0.5);
  EXPECT_EQ((read.window.P_comm[2, 1]), 1);
  EXPECT_EQ(read.wave_seen, 3u);
  EXPECT_EQ(read.counted, 12);
  EXPECT_EQ(read.work, stored["work"]);
  ASSERT_TRUE(read.baseline);
  EXPECT_EQ(read.baseline->compute.at(2), 2.5);
  EXPECT_EQ(read.baseline->after, 9u);

  decide::State window = read.window;
  round_predictabilities(window);
  SchedulerState rounded = read;
  rounded.window = window;
  const SchedulerState again = scheduler_state_from_json(to_json(rounded), 3, 2);
  EXPECT_EQ(again.window, window);
  EXPECT_EQ(again.counted, read.counted);
  EXPECT_EQ(again.work, read.work);
  EXPECT_EQ(again.baseline->compute, read.baseline->compute);
  EXPECT_NEAR((again.window.P_comm[1, 0]), 0.25, 0.01);
}

}  // namespace
}  // namespace bsp::reconcile
