// Deadlines, time to live, and the pods that stay behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <limits>

#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

// --- Deadlines, time to live, pods that stay --------------------------------------------------------------------
TEST(JobLife, TheDeadlineEndsAJobInAnyPhase) {
  for (const bool starts : {true, false}) {
    World w;
    w.job.spec.run_policy.active_deadline_seconds = 30;
    if (starts) w.slow_start = 10'000;
    ASSERT_TRUE(w.run_until(JobPhase::kFailed, 200)) << w.trace;
    EXPECT_EQ(w.job.status.reason, "DeadlineExceeded");
    EXPECT_GT(w.now - w.job.status.start_time, 30s);
    EXPECT_LT(w.now - w.job.status.start_time, 31s);
    expect_quiet(w);
  }
}

TEST(JobLife, TheDeadlineDoesNotWaitForAPostponedGate) {
  World w;
  w.job.spec.run_policy.active_deadline_seconds = 30;
  w.never_migratable = true;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(Phase::kPausing));
  ASSERT_TRUE(w.run_until(JobPhase::kFailed, 200)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "DeadlineExceeded");
  EXPECT_EQ(w.migration("m").status.phase, Phase::kRolledBack);
  expect_quiet(w);
}

TEST(JobLife, TheTimeToLiveRemovesAFinishedJob) {
  World w({.supersteps = 3});
  w.job.spec.run_policy.ttl_seconds_after_finished = 60;
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded));
  for (int i = 0; i < 290; ++i) w.tick();
  EXPECT_FALSE(w.removed);
  EXPECT_TRUE(w.run_until([&] { return w.removed; }, 30)) << w.trace;
}

TEST(JobLife, LimitsBeyondATimestampsRangeNeverExpire) {
  World w({.supersteps = 3});
  w.job.spec.run_policy.active_deadline_seconds = 99'999'999'999;
  w.job.spec.run_policy.ttl_seconds_after_finished = std::numeric_limits<std::int64_t>::max();
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  for (int i = 0; i < 20; ++i) w.tick();
  EXPECT_FALSE(w.removed);
}

TEST(JobLife, CleanPodPolicyDecidesWhichPodsStay) {
  using enum crds::CleanPodPolicy;
  for (const auto policy : {kAll, kRunning, kNone}) {
    World w;
    w.job.spec.run_policy.clean_pod_policy = policy;
    w.job.spec.run_policy.backoff_limit = 0;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.end_program(0, 1, 0);
    ASSERT_TRUE(w.run_until(JobPhase::kFailed));
    for (int i = 0; i < 10; ++i) w.tick();
    if (policy == kAll) {
      EXPECT_TRUE(w.pods.empty());
    }
    if (policy == kRunning) {
      EXPECT_THAT(pods_of(w), ElementsAre("job-r0-g0")) << "whose log says why it failed";
    }
    if (policy == kNone) {
      EXPECT_EQ(w.pods.size(), 2u);
    }
    EXPECT_EQ(w.unrest(), "");
  }
}

TEST(JobLife, APodWithAnotherRunningContainerCountsAsRunning) {
  using enum crds::CleanPodPolicy;
  for (const auto policy : {kRunning, kNone}) {
    World w({.supersteps = 3});
    w.job.spec.run_policy.clean_pod_policy = policy;
    ASSERT_TRUE(w.run_until(JobPhase::kStarting));
    ASSERT_TRUE(w.run_until([&] { return w.pods.contains("job-r0-g0"); }));
    w.pods.at("job-r0-g0").helper = true;
    ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << "the program's end is what counts\n" << w.trace;
    for (int i = 0; i < 10; ++i) w.tick();
    EXPECT_THAT(pods_of(w), ElementsAre("job-r0-g0", "job-r1-g0")) << "it may yet end by itself";
    w.steady += std::chrono::seconds(30);
    for (int i = 0; i < 10; ++i) w.tick();
    if (policy == kRunning)
      EXPECT_THAT(pods_of(w), ElementsAre("job-r1-g0"));
    else
      EXPECT_EQ(w.pods.size(), 2u);
    EXPECT_EQ(w.unrest(), "");
  }
}

// The sidecars have ended with their pods, so that only the nodes know of it.
TEST(JobLife, AFinalizedJobThatEndsWithoutAnOperatorIsNotRestarted) {
  for (const bool all : {true, false}) {
    World w({});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.restart_operator(1000);
    for (auto& [name, pod] : w.pods) pod.status.mpi_finalized = all || pod.rank != 1;
    for (const crds::RankPlace& place : w.job.status.ranks)
      w.end_program(place.rank.value, place.rank.value == 1 ? 3 : 0, 0);
    ASSERT_TRUE(w.run_until([&] { return w.all_ended(); }, 200)) << w.trace;
    for (int i = 0; i < 10; ++i) w.tick();
    w.restart_operator();
    ASSERT_TRUE(w.run_until(all ? JobPhase::kFailed : JobPhase::kRestarting, 300)) << w.trace;
    EXPECT_THAT(w.job.status.message, HasSubstr("rank 1 exited with code 3"));
    EXPECT_EQ(w.job.status.message.contains("every rank had passed MPI_Finalize, so the job is not restarted"), all);
  }
}

}  // namespace
}  // namespace bsp::reconcile::sim
