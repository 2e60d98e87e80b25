// A job whose status is removed goes on with the ranks that run, or starts from its beginning; no rank ever runs twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/kernel/rebuild.h"
#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;

TEST(Rebuild, ARunningJobGoesOn) {
  World w({.ranks = 4, .slow = 4, .fast = 4, .supersteps = 80});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 5; })) << w.trace;
  const auto epoch = w.job.status.epoch->epoch;
  w.remove_status();
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_TRUE(w.has_event(kStatusRebuilt));
  const auto said = std::ranges::find_if(w.events, [](const Event& event) { return event.reason == kStatusRebuilt; });
  ASSERT_NE(said, w.events.end());
  EXPECT_THAT(said->message, ::testing::HasSubstr("calibration and the state of decisions, which are measured again"));
  EXPECT_EQ(w.job.status.epoch->epoch, epoch);
  EXPECT_GT(w.job.status.epochs_used, epoch);
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_EQ(w.created.size(), 4u) << "no rank may start again";
  expect_quiet(w);
}

TEST(Rebuild, ANewOperatorDoesTheSame) {
  World w({.supersteps = 80});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 5; })) << w.trace;
  w.remove_status();
  w.restart_operator(5);
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_EQ(w.created.size(), 2u);
  expect_quiet(w);
}

TEST(Rebuild, RanksMoveOnFromWhereTheyHaveMovedTo) {
  World w({.supersteps = 200});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  for (int i = 0; i < 15; ++i) w.tick();
  ASSERT_EQ(w.job.status.ranks[0].set, "fast");
  const std::uint32_t wave = w.job.status.wave;
  w.remove_status();
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.job.status.ranks[0].set, "fast");
  EXPECT_EQ(w.job.status.ranks[0].pod, "job-r0-g1");
  EXPECT_EQ(w.job.status.migrations.succeeded, 1u);
  EXPECT_EQ(w.job.status.wave, wave);
  w.migrate_by_hand("back", 0, "slow");
  ASSERT_TRUE(w.run_until([&] { return wave_over(w); })) << w.trace;
  EXPECT_EQ(w.migration("back").status.phase, Phase::kSucceeded) << w.trace;
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  expect_quiet(w);
}

TEST(Rebuild, AJobThatHasEndedMeanwhileSucceeds) {
  World w({.supersteps = 20});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 5; })) << w.trace;
  w.remove_status();
  w.restart_operator(100);
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_TRUE(w.has_event(kStatusRebuilt));
  EXPECT_EQ(w.job.status.reason, "Completed");
  EXPECT_EQ(w.created.size(), 2u);
  expect_quiet(w);
}

TEST(Rebuild, WaitsForASidecarThatIsSilentForAWhile) {
  World w({.supersteps = 200});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 5; })) << w.trace;
  w.remove_status();
  w.silence(w.find("job-r1-g0")->name, 50);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.created.size(), 2u);
}

TEST(Rebuild, StartsFromTheBeginningIfARankCantBeFound) {
  for (const bool lost : {true, false}) {
    World w({.supersteps = 200});
    ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 5; })) << w.trace;
    w.remove_status();
    if (lost)
      w.lose_pod("job-r1-g0");
    else
      w.silence("job-r1-g0", 100'000);
    ASSERT_TRUE(w.run_until([&] { return w.created.size() == 4; }, 1000)) << w.trace;
    EXPECT_TRUE(w.has_event(kStatusLost));
    EXPECT_EQ(w.violation, "") << w.trace;
  }
}

class RebuildInPhase : public testing::TestWithParam<std::tuple<Phase, bool>> {};
INSTANTIATE_TEST_SUITE_P(Wave, RebuildInPhase,
                         testing::Combine(testing::Values(Phase::kPreparing, Phase::kPausing, Phase::kCheckpointing,
                                                          Phase::kTransferring, Phase::kRestoring, Phase::kResuming,
                                                          Phase::kRollingBack),
                                          testing::Bool()),
                         [](const auto& p) {
                           return std::string(crds::to_string(std::get<0>(p.param))) +
                                  (std::get<1>(p.param) ? "NewOperator" : "SameOperator");
                         });

TEST_P(RebuildInPhase, NoRankRunsTwiceAndTheJobEnds) {
  const auto [phase, restarts] = GetParam();
  for (int later = 0; later < 4; ++later) {
    World w({.supersteps = 120});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    w.migrate_by_hand("m", 0, "fast");
    if (phase == Phase::kRollingBack) {
      ASSERT_TRUE(w.run_until(Phase::kCheckpointing)) << w.trace;
      w.lose_pod("job-r0-g1");
    }
    ASSERT_TRUE(w.run_until(phase)) << w.trace;
    for (int i = 0; i < later; ++i) w.tick();
    w.remove_status();
    if (restarts) w.restart_operator(5);
    ASSERT_TRUE(w.run_until(JobPhase::kSucceeded, 3000)) << w.violation << w.trace;
    expect_quiet(w);
  }
}

}  // namespace
}  // namespace bsp::reconcile::sim
