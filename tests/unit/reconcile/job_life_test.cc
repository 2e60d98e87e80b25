// The start and end of a job that succeeds, and its first epoch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --- Start and end -------------------------------------------------------------------------------------------
TEST(JobLife, StartsRunsAndSucceeds) {
  World w({.ranks = 3, .slow = 2, .fast = 2, .supersteps = 20});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_THAT(pods_of(w), ElementsAre("job-r0-g0", "job-r1-g0", "job-r2-g0"));
  EXPECT_EQ(w.pods.at("job-r1-g0").node, "slow-1") << "Contiguous fills the first Set first";
  EXPECT_EQ(w.pods.at("job-r2-g0").node, "fast-0");
  ASSERT_TRUE(w.job.status.epoch);
  EXPECT_EQ(w.job.status.epoch->epoch, 1u);
  EXPECT_EQ(w.job.status.epoch->pmix_namespace, "job-uid-e1");
  EXPECT_THAT(w.job.status.epoch->sets, ElementsAre("slow", "fast"));
  EXPECT_EQ(w.job.status.epoch->members.at(2).set, 1u);
  EXPECT_EQ(w.job.status.epoch->members.at(2).pod_uid, w.pods.at("job-r2-g0").uid);
  EXPECT_TRUE(is_true(w, "Running"));
  EXPECT_FALSE(is_true(w, "Complete"));
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_EQ(w.unrest(), "");
  const Time started = w.job.status.start_time;

  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "Completed");
  EXPECT_EQ(w.job.status.superstep.value, 20u);
  EXPECT_EQ(w.job.status.attempt, 0u);
  EXPECT_EQ(w.job.status.start_time, started);
  EXPECT_EQ(w.job.status.completion_time, w.now);
  EXPECT_TRUE(is_true(w, "Complete"));
  EXPECT_FALSE(is_true(w, "Running"));
  EXPECT_TRUE(w.has_event("Mapped") && w.has_event("Running") && w.has_event("Completed"));
  expect_quiet(w);
}

TEST(JobLife, AProgramOfOneSuperstepSucceeds) {
  World w({.supersteps = 0});
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded, 100)) << w.trace;
}

TEST(JobLife, TheEpochIsStoredBeforeAnySidecarReceivesIt) {
  World w;
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; }));
  ASSERT_FALSE(w.job.status.epoch);
  for (int i = 0; i < 10; ++i) {
    w.conflicts = 1;  // nothing gets stored
    w.tick();
    ASSERT_FALSE(w.job.status.epoch);
    for (const auto& [name, pod] : w.pods) EXPECT_EQ(pod.status.prepared_epoch, 0u) << name;
  }
  const Step out = w.reconcile();
  EXPECT_TRUE(out.change() && status_of(out).epoch);
}

TEST(JobLife, NoPodIsCreatedBeforeItsPlaceIsStored) {
  World w;
  const Step out = w.reconcile();
  EXPECT_TRUE(out.change());
  EXPECT_EQ(status_of(out).phase, JobPhase::kStarting);
}

TEST(JobLife, TheEpochOpensOnlyWhenAllHavePreparedIt) {
  World w;
  ASSERT_TRUE(w.run_until([&] { return w.job.status.epoch.has_value(); }));
  Observed o = w.observe();
  o.sidecars[Seat{"job-r0-g0"}].status->prepared_epoch = o.sidecars[Seat{"job-r0-g0"}].status->epoch = 0;
  o.sidecars[Seat{"job-r1-g0"}].status->prepared_epoch = 1;
  o.sidecars[Seat{"job-r1-g0"}].status->epoch = 0;
  const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
  ASSERT_EQ(out.work().actions.size(), 1u);
  EXPECT_EQ(to_string(out.work().actions[0].kind), wire::kPrepareEpoch);
  EXPECT_EQ(out.work().actions[0].seat, Seat{"job-r0-g0"});
}

TEST(JobLife, AJobThatDoesNotFitFailsAtOnceWithTheReason) {
  World none({.ranks = 5});
  ASSERT_TRUE(none.run_until(JobPhase::kFailed, 5));
  EXPECT_EQ(none.job.status.reason, "NoCapacity");
  EXPECT_THAT(none.job.status.message, HasSubstr("5"));
  expect_quiet(none);

  World unknown;
  unknown.job.spec.sets.names = {"slow", "gpu"};
  ASSERT_TRUE(unknown.run_until(JobPhase::kFailed, 5));
  EXPECT_EQ(unknown.job.status.reason, "NoSuchSet");
  EXPECT_EQ(unknown.job.status.message, "spec.sets.names: no node belongs to Set gpu (label migbsp.io/set)");
}

TEST(JobLife, TheLabelOfTheSetsIsStored) {
  World w;
  w.job.spec.sets.label = "pool";
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.job.status.set_label, "pool");
}

// A spot node that is reclaimed, a pool that is scaled to zero.
TEST(JobLife, ASetThatHasLostItsLastNodeIsWaitedForIfOneMayCome) {
  World w({.ranks = 3, .slow = 2, .fast = 1});
  w.capacity_may_come = true;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.lose_node("fast-0");
  const auto on_it = std::ranges::find(w.job.status.ranks, "fast-0", &crds::RankPlace::node);
  ASSERT_NE(on_it, w.job.status.ranks.end());
  w.lose_pod(on_it->pod);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.reason == "NoSuchSet"; })) << w.trace;
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kPending);
  EXPECT_EQ(w.job.status.message,
            "spec.sets.names: no node belongs to Set fast (label migbsp.io/set); the job starts once one does: add or "
            "label nodes, or create the job again with Sets that have nodes, or with another "
            "spec.scheduling.gang: its pods then wait for nodes that an autoscaler adds");
  EXPECT_EQ(std::ranges::count(w.events, "NoSuchSet", &Event::reason), 1) << "said once";
  EXPECT_EQ(std::ranges::find(w.events, "NoSuchSet", &Event::reason)->type, "Warning");
  EXPECT_EQ(w.unrest(), "");
  w.nodes.push_back({.name = "fast-9", .set = "fast"});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 1u);
}

TEST(JobLife, ASetWithoutANodeAtSubmissionIsWaitedForIfOneMayCome) {
  World w({.ranks = 2, .slow = 2, .fast = 0});
  w.capacity_may_come = true;
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kPending);
  EXPECT_EQ(w.job.status.reason, "NoSuchSet");
  EXPECT_TRUE(w.pods.empty());
  w.nodes.push_back({.name = "fast-9", .set = "fast"});
  EXPECT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
}

// It counts from the first attempt's start, as a Job's does.
TEST(JobLife, TheDeadlineOfAJobThatWaitsForNodesAgainPasses) {
  World w({.ranks = 3, .slow = 2, .fast = 1});
  w.capacity_may_come = true;
  w.job.spec.run_policy.active_deadline_seconds = 60;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.lose_node("fast-0");
  w.lose_pod(std::ranges::find(w.job.status.ranks, "fast-0", &crds::RankPlace::node)->pod);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.phase == JobPhase::kPending; })) << w.trace;
  ASSERT_TRUE(w.run_until(JobPhase::kFailed, 400)) << w.trace;
  EXPECT_EQ(w.job.status.reason, "DeadlineExceeded");
  expect_quiet(w);
}

TEST(JobLife, SetsAreDiscoveredAndMayLoseTheirLastNode) {
  World w({.ranks = 3, .slow = 1, .fast = 2});
  w.job.spec.sets.names.clear();
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 3; }));
  std::erase_if(w.nodes, [](const auto& node) { return node.set == "slow"; });
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_THAT(w.job.status.epoch->sets, ElementsAre("fast", "slow"));
  EXPECT_EQ(w.job.status.epoch->members.at(2).set, 1u);
}

}  // namespace
}  // namespace bsp::reconcile::sim
