// Suspension, deletion and the death of the operator in each phase of a job and of its wave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;

// --- Suspension, deletion, the operator's death, in each phase ---------------------------------------------------
constexpr Phase kAnyWave[] = {Phase::kPending,      Phase::kPreparing, Phase::kPausing,  Phase::kCheckpointing,
                              Phase::kTransferring, Phase::kRestoring, Phase::kResuming, Phase::kRollingBack};

// A running job, in this phase of a wave that moves rank 0; kPending: no wave.
void bring_to(World& w, Phase phase) {
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  if (phase == Phase::kPending) return;
  w.migrate_by_hand("m", 0, "fast");
  if (phase == Phase::kRollingBack) {
    ASSERT_TRUE(w.run_until(Phase::kCheckpointing)) << w.trace;
    w.lose_pod("job-r0-g1");
  }
  ASSERT_TRUE(w.run_until(phase)) << w.trace;
}

class JobInPhase : public testing::TestWithParam<Phase> {};
INSTANTIATE_TEST_SUITE_P(Wave, JobInPhase, testing::ValuesIn(kAnyWave), [](const auto& p) {
  return p.param == Phase::kPending ? "None" : std::string(crds::to_string(p.param));
});

TEST_P(JobInPhase, SuspendsAndResumesInNewPods) {
  World w({.supersteps = 60});
  bring_to(w, GetParam());
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended)) << w.trace;
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_TRUE(w.pods.empty()) << w.trace;
  EXPECT_EQ(w.unrest(), "");
  EXPECT_EQ(w.job.status.attempt, 0u) << "a suspension costs no attempt";
  if (GetParam() != Phase::kPending) {
    const bool committed = GetParam() == Phase::kResuming;
    EXPECT_EQ(w.migration("m").status.phase, committed ? Phase::kSucceeded : Phase::kRolledBack) << w.trace;
    EXPECT_EQ(w.job.status.migrations.active, 0u);
  }
  w.job.spec.run_policy.suspend = false;
  const std::uint64_t used = w.job.status.epochs_used;
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_GE(w.job.status.epoch->epoch, used);
  expect_quiet(w);
}

TEST_P(JobInPhase, DeletionLeavesNothing) {
  World w;
  bring_to(w, GetParam());
  w.remove_job();
  ASSERT_TRUE(w.run_until([&] { return w.removed; }, 50)) << w.trace;
  EXPECT_TRUE(w.pods.empty());
}

TEST_P(JobInPhase, ANewOperatorContinues) {
  World w({.supersteps = 60});
  bring_to(w, GetParam());
  w.restart_operator(5);
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
  if (GetParam() != Phase::kPending) {
    const bool fell = GetParam() == Phase::kRollingBack;
    EXPECT_EQ(w.migration("m").status.phase, fell ? Phase::kRolledBack : Phase::kSucceeded) << w.trace;
  }
  expect_quiet(w);
}

TEST(JobLife, SuspendedBeforeAndWhileItStarts) {
  World w({.supersteps = 5});
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 3));
  EXPECT_TRUE(w.created.empty());
  EXPECT_TRUE(is_true(w, "Suspended"));
  w.job.spec.run_policy.suspend = false;
  w.slow_start = 1000;
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended, 5)) << w.trace;
  expect_quiet(w);
  EXPECT_TRUE(w.pods.empty());
  w.slow_start = 1;
  w.job.spec.run_policy.suspend = false;
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
}

TEST(JobLife, TheDeadlineCountsFromTheResumption) {
  World w;
  w.job.spec.run_policy.active_deadline_seconds = 30;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.job.spec.run_policy.suspend = true;
  for (int i = 0; i < 300; ++i) w.tick();
  w.job.spec.run_policy.suspend = false;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  for (int i = 0; i < 50; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
}

TEST(JobLife, CanBeDeletedWhileStartingRestartingOrFinished) {
  for (const auto phase : {JobPhase::kStarting, JobPhase::kRestarting, JobPhase::kFailed}) {
    World w;
    if (phase == JobPhase::kFailed) w.job.spec.run_policy.backoff_limit = 0;
    if (phase != JobPhase::kStarting) {
      ASSERT_TRUE(w.run_until(JobPhase::kRunning));
      w.end_program(0, 1, 0);
    }
    ASSERT_TRUE(w.run_until(phase));
    w.remove_job();
    ASSERT_TRUE(w.run_until([&] { return w.removed; }, 50)) << w.trace;
  }
}

// Each write of the status is the last thing that one operator does.
TEST(JobLife, AnOperatorThatDiesAfterAnyWriteLosesNothing) {
  int writes = 0;
  for (bool died = true; died; ++writes) {
    World w({.supersteps = 50});
    w.die_after_stores = writes;
    ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > 5; })) << w.trace;
    w.migrate_by_hand("m", 1, "fast");
    ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << writes << "\n" << w.trace;
    EXPECT_EQ(w.job.status.attempt, 0u) << writes << "\n" << w.trace;
    EXPECT_EQ(w.migration("m").status.phase, Phase::kSucceeded) << writes << "\n" << w.trace;
    expect_quiet(w);
    died = w.die_after_stores < 0;
  }
  EXPECT_GT(writes, 12) << "a life with one wave takes more writes than that";
}

TEST(JobLife, AConflictingWriteIsDecidedAgain) {
  World w({.supersteps = 80});
  for (int i = 0; w.job.status.phase != JobPhase::kSucceeded && i < 600; ++i) {
    w.conflicts = i % 3;
    if (i == 40) w.migrate_by_hand("m", 1, "fast");
    w.tick();
    ASSERT_EQ(w.violation, "") << w.trace;
  }
  EXPECT_EQ(w.job.status.phase, JobPhase::kSucceeded) << w.trace;
  EXPECT_EQ(w.migration("m").status.phase, Phase::kSucceeded);
}

}  // namespace
}  // namespace bsp::reconcile::sim
