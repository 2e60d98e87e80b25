// A job that can get no pod holds no slots for long, and starts by itself once it can.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using ::testing::HasSubstr;

const std::string& message_of(const World& w, const char* condition) {
  static const std::string none;
  const crds::Condition* c = crds::find_condition(w.job.status.conditions, condition);
  return c ? c->message : none;
}

TEST(RefusedPods, HoldNoSlotsFromOtherJobs) {
  SharedNodes cluster;
  World refused({.name = "a", .ranks = 4, .cluster = &cluster}), other({.name = "b", .ranks = 4, .cluster = &cluster});
  for (World* w : {&refused, &other}) {
    w->capacity_may_come = true;
    w->job.spec.run_policy.clean_pod_policy = crds::CleanPodPolicy::kAll;
  }
  refused.refuses = [](const PodRequest& r) -> std::optional<Error> {
    if (r.rank != 2) return std::nullopt;
    return Error{ErrorCode::kRefused, "exceeded quota: compute"};
  };
  const auto until = [&](auto wanted) {
    for (int i = 0; i < 1000 && refused.violation.empty() && other.violation.empty(); ++i) {
      if (wanted()) return true;
      refused.tick();
      other.tick();
    }
    return false;
  };
  ASSERT_TRUE(until([&] { return refused.job.status.phase == JobPhase::kStarting && !refused.pods.empty(); }));
  ASSERT_TRUE(until([&] { return refused.job.status.phase == JobPhase::kPending; })) << refused.trace;
  EXPECT_EQ(refused.job.status.reason, "PodsRefused");
  EXPECT_TRUE(is_true(refused, "PodsRefused"));
  EXPECT_THAT(message_of(refused, "PodsRefused"), HasSubstr("pod a-r2-g0 can't be created: exceeded quota: compute"));
  ASSERT_TRUE(until([&] { return other.job.status.phase == JobPhase::kRunning; })) << refused.trace << other.trace;
  EXPECT_TRUE(refused.pods.empty());
  EXPECT_EQ(refused.job.status.attempt, 0u) << "no attempt of the program has failed";

  refused.refuses = {};
  other.remove_job();
  ASSERT_TRUE(until([&] { return refused.job.status.phase == JobPhase::kRunning; })) << refused.trace;
  EXPECT_FALSE(is_true(refused, "PodsRefused"));
  EXPECT_EQ(std::ranges::count(refused.events, "PodsRefused", &Event::reason), 1) << "not again at each try";
  EXPECT_EQ(refused.violation + other.violation, "");
}

TEST(RefusedPods, AreTriedAgainAfterAWhile) {
  World w({.ranks = 2});
  w.capacity_may_come = true;
  w.refuses = [](const PodRequest&) { return Error{ErrorCode::kRefused, "no PriorityClass with name high was found"}; };
  for (int tries = 1; tries <= 3; ++tries) {
    ASSERT_TRUE(w.run_until(JobPhase::kStarting)) << w.trace;
    ASSERT_TRUE(w.run_until(JobPhase::kPending)) << w.trace;
    EXPECT_EQ(w.unrest(), "") << "it rests meanwhile";
  }
  EXPECT_TRUE(w.created.empty());
  w.refuses = {};
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.violation, "");
}

TEST(RefusedPods, WhatMayPassByItselfIsWaitedFor) {
  World w({.ranks = 2});
  w.capacity_may_come = true;
  w.refuses = [](const PodRequest&) { return Error{ErrorCode::kUnavailable, "etcd is away", true}; };
  ASSERT_TRUE(w.run_until(JobPhase::kStarting)) << w.trace;
  for (int i = 0; i < 150; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kStarting);
}

TEST(RefusedPods, AClaimThatIsMissingCountsAsARefusal) {
  for (const auto& [unscheduled, gives_back] :
       {std::pair{"0/4 nodes are available: persistentvolumeclaim \"data\" not found", true},
        {"0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims", true},
        {"0/4 nodes are available: 4 Insufficient cpu", false}}) {
    World w({.ranks = 2});
    w.capacity_may_come = true;
    w.no_room = true;
    ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; })) << w.trace;
    Observed o = w.observe();
    for (auto& [name, pod] : o.pods) pod.unscheduled = unscheduled;
    o.starting_for = std::chrono::seconds(16);
    const Step step = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
    EXPECT_EQ(status_of(step).phase, gives_back ? JobPhase::kPending : JobPhase::kStarting) << unscheduled;
  }
}

}  // namespace
}  // namespace bsp::reconcile::sim
