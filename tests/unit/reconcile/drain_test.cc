// Nodes that are drained: their ranks move away.
#include "operator/reconcile/kernel/drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <set>

#include "operator/reconcile/capacity/resources.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using nlohmann::json;
using testing::HasSubstr;

const crds::Condition& draining(const World& w) {
  static const crds::Condition none{
      .type = kDraining, .status = crds::ConditionStatus::kFalse, .reason = "", .message = ""};
  const crds::Condition* c = crds::find_condition(w.job.status.conditions, kDraining);
  return c ? *c : none;
}
bool is_draining(const World& w) { return draining(w).status == crds::ConditionStatus::kTrue; }
bool has_ranks_on(const World& w, const std::string& node) {
  return std::ranges::any_of(w.job.status.ranks, [&](const auto& place) { return place.node == node; });
}

// A job whose two ranks run in its only Set, which has no free slot.
struct FullPool : World {
  FullPool() : World({.ranks = 2, .slow = 2, .fast = 0}) {
    job.spec.sets.names = {"slow"};
    EXPECT_TRUE(run_until(JobPhase::kRunning)) << trace;
  }
};

TEST(Drain, MovesAllRanksInOneWave) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.cordon("slow-0");
  w.cordon("slow-1");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 2 && !is_draining(w); })) << w.trace;
  EXPECT_EQ(w.job.status.wave, 1u);
  EXPECT_EQ(w.job.status.attempt, 0u);
  EXPECT_FALSE(has_ranks_on(w, "slow-0") || has_ranks_on(w, "slow-1"));
  EXPECT_TRUE(w.has_event("MovingAway"));
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 2; })) << "the nodes are empty";
  EXPECT_EQ(w.unrest(), "");
}

TEST(Drain, ThatTakesSeveralWavesHasSomewhereToGo) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  w.job.spec.rescheduling.max_moves_per_wave = 1;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.cordon("slow-0");
  w.cordon("slow-1");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 2 && !is_draining(w); })) << w.trace;
  EXPECT_EQ(w.job.status.wave, 2u);
  EXPECT_FALSE(w.has_event("NowhereToGo"));
}

void annotate(World& w, std::uint32_t rank, const char* to) {
  Pod& pod = *w.pod_of(rank);
  pod.object["metadata"]["annotations"] = {{std::string(names::kAnnotationMoveTo), to}};
  pod.facts_of.clear();
}

TEST(Drain, AnAnnotationOnAPodMovesItsRank) {
  for (const auto& [to, set] : {std::pair{"fast", "fast"}, {"*", "slow"}}) {
    World w({.ranks = 1, .slow = 2, .fast = 2});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    const std::string node = w.job.status.ranks[0].node;
    annotate(w, 0, to);
    ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
    EXPECT_EQ(w.job.status.ranks[0].set, set);
    EXPECT_NE(w.job.status.ranks[0].node, node);
    EXPECT_EQ(w.migrations.size(), 1u);
    for (int i = 0; i < 50; ++i) w.tick();
    EXPECT_EQ(w.job.status.wave, 1u) << "once";
  }
}

// Its node has room for another pod, and the scheduler is free to choose within what the pod asks for.
TEST(Drain, ARankThatLeavesItsNodeNeverLandsOnItAgain) {
  const auto by_annotation = [](World& w) { annotate(w, 0, "*"); };
  const auto by_drain = [](World& w) { w.cordon("slow-0"); };
  const auto by_plan = [](World& w) { w.decide({{.migration = "", .rank = 0, .set = "slow", .node = "slow-1"}}); };
  const auto by_node = [](World& w) { w.migrate_by_hand("m", 0, "slow", "slow-1"); };
  using Leave = std::function<void(World&)>;
  for (const Leave& leave : {Leave(by_annotation), Leave(by_drain), Leave(by_plan), Leave(by_node)}) {
    World w({.ranks = 1, .slow = 2, .fast = 0, .slots = 2});
    w.job.spec.sets.names = {"slow"};
    w.scheduled = true;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    ASSERT_EQ(w.job.status.ranks[0].node, "slow-0");
    leave(w);
    ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
    EXPECT_EQ(w.job.status.ranks[0].node, "slow-1");
  }
}

TEST(Drain, ARankThatIsAskedToLeaveItsNodeGoesAsSoonAsASlotIsFree) {
  FullPool w;
  annotate(w, 1, "*");
  ASSERT_TRUE(w.run_until([&] { return w.migrations.size() == 1; })) << w.trace;
  for (int i = 0; i < 50; ++i) w.tick();
  const crds::RankMigration& m = w.migrations.begin()->second;
  EXPECT_EQ(m.status.phase, crds::MigrationPhase::kPending);
  EXPECT_EQ(m.status.reason, "NoCapacity");
  EXPECT_EQ(m.status.message, "no other node of the job's Sets has a free slot");
  EXPECT_FALSE(is_draining(w)) << "its node stays";
  EXPECT_EQ(w.unrest(), "") << "said once";
  w.nodes.push_back({.name = "slow-9", .set = "slow"});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.ranks[1].node == "slow-9"; })) << w.trace;
  EXPECT_EQ(w.migrations.size(), 1u);
}

// The next attempt, or the resumed job, places the rank anew: it need not leave that node.
TEST(Drain, ARequestToLeaveANodeEndsWithThePods) {
  for (const bool suspends : {true, false}) {
    FullPool w;
    w.job.spec.run_policy.backoff_limit = 1;
    annotate(w, 1, "*");
    w.migrate_by_hand("stays", 0, "fast", "fast-0");
    ASSERT_TRUE(w.run_until([&] { return w.migrations.size() == 2; })) << w.trace;
    for (int i = 0; i < 5; ++i) w.tick();
    if (suspends) {
      w.job.spec.run_policy.suspend = true;
      ASSERT_TRUE(w.run_until(JobPhase::kSuspended)) << w.trace;
    } else {
      w.lose_pod(w.job.status.ranks[0].pod);
      ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1; })) << w.trace;
    }
    w.job.spec.run_policy.suspend = false;
    w.nodes.push_back({.name = "slow-9", .set = "slow"});
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    for (int i = 0; i < 50; ++i) w.tick();
    EXPECT_EQ(w.job.status.wave, 0u) << "nothing moves";
    const auto asked =
        std::ranges::find_if(w.migrations, [](const auto& entry) { return entry.second.spec.target_node == "*"; });
    ASSERT_NE(asked, w.migrations.end());
    EXPECT_EQ(asked->second.status.phase, crds::MigrationPhase::kFailed);
    EXPECT_EQ(asked->second.status.reason, "PodsEnded");
  }
}

TEST(Drain, TellsOfItsOwnRanksOnly) {
  FullPool w;
  annotate(w, 1, "*");
  ASSERT_TRUE(w.run_until([&] { return w.migrations.size() == 1; })) << w.trace;
  w.nodes.push_back({.name = "slow-9", .set = "slow"});
  w.cordon(w.job.status.ranks[0].node);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.ranks[0].node == "slow-9"; })) << w.trace;
  EXPECT_FALSE(w.has_event("NowhereToGo")) << "rank 1 has, but its node stays";
}

TEST(Drain, ARankThatIsToLeaveItsNodeGoesBeforeOneThatGains) {
  FullPool w;
  annotate(w, 1, "*");
  ASSERT_TRUE(w.run_until([&] { return w.migrations.size() == 1; })) << w.trace;
  w.nodes.push_back({.name = "slow-9", .set = "slow"});
  w.decide({{.migration = "", .rank = 0, .set = "slow", .node = "slow-9"}});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
  EXPECT_EQ(w.job.status.ranks[1].node, "slow-9");
}

TEST(Drain, AnAnnotationThatCannotBeFollowedIsAnswered) {
  World w({.ranks = 1, .slow = 1, .fast = 1});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  annotate(w, 0, "No Such Set");
  ASSERT_TRUE(w.run_until([&] { return w.has_event("NoSuchTarget"); })) << w.trace;
  ASSERT_EQ(w.migrations.size(), 1u);
  EXPECT_EQ(w.migrations.begin()->second.status.phase, crds::MigrationPhase::kFailed);
  for (int i = 0; i < 50; ++i) w.tick();
  EXPECT_EQ(w.unrest(), "") << "once";
}

// Names that are made of a job's have to fit into a label.
TEST(Drain, AnnotationsOfJobsWhoseNamesBeginAlikeMakeTwoRankMigrations) {
  const std::string all = "climate-ensemble-north-atlantic-2026-member-";
  std::set<std::string> names;
  for (const char* member : {"01", "02"}) {
    World w({.name = all + member, .ranks = 1, .slow = 1, .fast = 1});
    w.job.metadata.uid = std::format("{}c5a8b7d-5f0e-4f6e-9a53-0d8a44ee21b7", member);
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    annotate(w, 0, "fast");
    const Observed o = w.observe();
    const auto asked = asked_on_pods(o);
    ASSERT_EQ(asked.size(), 1u);
    EXPECT_EQ(asked_on_pods(o).front().metadata.name, asked.front().metadata.name) << "once";
    EXPECT_LE(asked.front().metadata.name.size(), 63u);
    names.insert(asked.front().metadata.name);
  }
  EXPECT_EQ(names.size(), 2u);
}

TEST(Drain, KeepsARankInItsSetIfItCan) {
  World w({.ranks = 1, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.cordon("slow-0");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
  EXPECT_EQ(w.job.status.ranks[0].node, "slow-1");
}

TEST(Drain, WithoutATargetIsReportedOnceAndFinallyAllowsEvictions) {
  FullPool w;
  w.job.spec.run_policy.drain_timeout_seconds = 10;
  EXPECT_TRUE(w.reconcile().work().protect);
  w.cordon("slow-0");
  ASSERT_TRUE(w.run_until([&] { return is_draining(w); }, 5)) << w.trace;
  EXPECT_EQ(draining(w).reason, "NowhereToGo");
  EXPECT_EQ(draining(w).message,
            with_remedy(
                kDraining,
                "node slow-0 is cordoned, and rank 0 must leave it; rank 0: no other node of the job's Sets has a free "
                "slot; 10 s after the drain began its pod may be evicted (spec.runPolicy.drainTimeoutSeconds), and the "
                "job restarts"));
  EXPECT_EQ(w.unrest(), "") << "reported once";
  EXPECT_TRUE(w.reconcile().work().protect);
  for (int i = 0; i < 55; ++i) w.tick();
  EXPECT_FALSE(w.reconcile().work().protect);
  w.cordon("slow-0", false);
  w.tick();
  EXPECT_FALSE(is_draining(w));
  EXPECT_TRUE(w.reconcile().work().protect);
  EXPECT_EQ(w.job.status.migrations.waves, 0u);
  EXPECT_EQ(w.violation, "");
}

TEST(Drain, ANewLeaderCountsItsTimeFromWhatIsStored) {
  FullPool w;
  w.job.spec.run_policy.drain_timeout_seconds = 10;
  w.cordon("slow-0");
  ASSERT_TRUE(w.run_until([&] { return is_draining(w); }, 5)) << w.trace;
  for (int restarts = 0; restarts < 3; ++restarts) {
    for (int i = 0; i < 15; ++i) w.tick();
    w.restart_operator();
  }
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_FALSE(w.reconcile().work().protect) << "11 s after the drain began";
  EXPECT_EQ(w.violation, "");
}

TEST(Drain, ContinuesAsSoonAsASlotIsFree) {
  FullPool w;
  w.cordon("slow-1");
  ASSERT_TRUE(w.run_until([&] { return is_draining(w); }, 5));
  w.nodes.push_back({.name = "slow-9", .set = "slow"});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.ranks[1].node == "slow-9"; })) << w.trace;
}

TEST(Drain, IsRetriedAfterARollback) {
  World w({.ranks = 1, .slow = 1, .fast = 1});
  w.limits.prepare = std::chrono::seconds(2);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.slow_start = 1'000;
  w.cordon("slow-0");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.rolled_back == 1; })) << w.trace;
  for (int i = 0; i < 20; ++i) w.tick();
  EXPECT_EQ(w.job.status.migrations.waves, 1u) << "not at once";
  w.slow_start = 1;
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
}

bool is_target_in_slow(const PodRequest& request) { return request.target && request.set == "slow"; }

TEST(Drain, ARankWhoseTargetsFailTwiceInASetGoesToAnother) {
  World w({.ranks = 1, .slow = 2, .fast = 1});
  w.limits.prepare = std::chrono::seconds(2);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.finds_no_node = is_target_in_slow;
  w.cordon("slow-0");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
  EXPECT_EQ(w.job.status.ranks[0].set, "fast");
  EXPECT_EQ(w.job.status.migrations.rolled_back, 2u);
}

TEST(Drain, AnEvictedRankWhoseTargetsFailTwiceInASetGoesToAnother) {
  World w({.ranks = 1, .slow = 2, .fast = 1});
  w.limits.prepare = std::chrono::seconds(2);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.finds_no_node = is_target_in_slow;
  for (std::uint32_t i = 0; i < 3; ++i) {
    w.migrate_by_hand(std::format("evicted-{}", i), 0, "", "*");
    ASSERT_TRUE(w.run_until([&] { return w.job.status.wave == i + 1 && w.job.status.phase == JobPhase::kRunning; }))
        << w.trace;
    EXPECT_EQ(w.migration(std::format("evicted-{}", i)).status.phase,
              i < 2 ? crds::MigrationPhase::kRolledBack : crds::MigrationPhase::kSucceeded);
  }
  EXPECT_EQ(w.job.status.ranks[0].set, "fast");
}

TEST(Drain, ATargetThatNeverComesUpIsTriedLessAndLessOften) {
  FullPool w;
  w.limits.prepare = std::chrono::seconds(2);
  w.nodes.push_back({.name = "slow-9", .set = "slow"});
  w.finds_no_node = is_target_in_slow;
  w.cordon("slow-0");
  for (int i = 0; i < 3000; ++i) w.tick();
  EXPECT_LE(w.job.status.migrations.waves, 6u) << "in ten minutes";
  EXPECT_GE(w.job.status.migrations.waves, 4u);
  EXPECT_THAT(draining(w).message,
              HasSubstr("rank 0: its target in Set slow did not come up, 5 times: the target pods were not ready in "
                        "time: job-r0-g"));
  w.restart_operator();
  w.finds_no_node = {};
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; }, 3000)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
}

TEST(Drain, ATargetThatDoesNotComeUpHoldsNoOtherRank) {
  World w({.ranks = 2, .slow = 4, .fast = 0});
  w.limits.prepare = std::chrono::seconds(2);
  w.job.spec.sets.names = {"slow"};
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.finds_no_node = [](const PodRequest& request) { return request.target && request.rank == 0; };
  w.cordon("slow-0");
  w.cordon("slow-1");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
  EXPECT_EQ(w.job.status.wave, 2u) << "the first went back as a whole";
  EXPECT_FALSE(has_ranks_on(w, "slow-1"));
}

TEST(Drain, GivesWayToAUsersRequest) {
  World w({.ranks = 1, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.migrate_by_hand("m", 0, "fast", "fast-1");
  w.cordon("slow-0");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
  EXPECT_EQ(w.job.status.ranks[0].node, "fast-1");
  EXPECT_EQ(w.job.status.wave, 1u);
}

TEST(Leaving, RecognisesDrainsAutoscalersAndClouds) {
  const auto with_taint = [](const char* key) {
    return json{{"spec", {{"taints", {{{"key", key}, {"effect", "NoSchedule"}}}}}}};
  };
  EXPECT_EQ(leaving(json::object(), {}), "");
  EXPECT_EQ(leaving({{"spec", {{"unschedulable", true}}}}, {}), "is cordoned");
  EXPECT_EQ(leaving({{"metadata", {{"deletionTimestamp", "2026-11-21T05:00:00Z"}}}}, {}), "is being deleted");
  for (const char* key :
       {"karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler", "node.cloudprovider.kubernetes.io/shutdown",
        "aws-node-termination-handler/spot-itn", "cloud.google.com/impending-node-termination"}) {
    EXPECT_THAT(leaving(with_taint(key), {}), HasSubstr(key));
    EXPECT_FALSE(takes_pods_of(with_taint(key), {{"spec", {{"tolerations", {{{"operator", "Exists"}}}}}}})) << key;
  }
  EXPECT_EQ(leaving(with_taint("dedicated"), {}), "");
}

TEST(Leaving, RecognisesTaintsThatEndPodsUnlessThesePodsTolerateThem) {
  const auto with = [](const char* key, const char* effect) {
    return json{{"spec", {{"taints", {{{"key", key}, {"effect", effect}}}}}}};
  };
  const auto tolerating = [](json toleration) { return json{{"spec", {{"tolerations", {std::move(toleration)}}}}}; };
  EXPECT_EQ(leaving(with("maintenance", "NoExecute"), {}), "has the taint maintenance:NoExecute");
  EXPECT_EQ(leaving(with("maintenance", "NoSchedule"), {}), "");
  EXPECT_EQ(leaving(with("maintenance", "NoExecute"), tolerating({{"key", "maintenance"}, {"operator", "Exists"}})),
            "");
  EXPECT_EQ(leaving(with("maintenance", "NoExecute"), tolerating({{"operator", "Exists"}})), "");
  EXPECT_EQ(leaving(with("maintenance", "NoExecute"),
                    tolerating({{"key", "maintenance"}, {"operator", "Exists"}, {"tolerationSeconds", 60}})),
            "has the taint maintenance:NoExecute");
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    EXPECT_EQ(leaving(with(key, "NoExecute"), {}), "") << "nothing can leave a node that doesn't answer";
}

TEST(Budget, AllowsNoEvictionEvenWithTargets) {
  World w({.ranks = 4, .slow = 4, .fast = 4});
  ASSERT_TRUE(w.run_until(JobPhase::kStarting)) << w.trace;
  EXPECT_EQ(w.reconcile().work().protect, 9u);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(migrate::Phase::kPreparing)) << w.trace;
  EXPECT_EQ(w.reconcile().work().protect, 9u) << "before the target is there";
  const json budget = make_disruption_budget(w.job, 9);
  EXPECT_EQ(budget.at("spec").at("minAvailable"), 9);
  EXPECT_EQ(budget.at("spec").at("unhealthyPodEvictionPolicy"), "AlwaysAllow");
  EXPECT_EQ(budget.at("spec").at("selector").at("matchLabels"), (json{{"migbsp.io/job", "job"}}));
  EXPECT_EQ(budget.at("metadata").at("ownerReferences").at(0).at("uid"), "job-uid");
}

// kube-prometheus warns of a budget with fewer healthy pods than it asks for.
TEST(Budget, IsMetWhileNothingMoves) {
  World w({.ranks = 4, .slow = 4, .fast = 4});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.reconcile().work().protect, 4u);
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1 && w.pods.size() == 4; })) << w.trace;
  EXPECT_EQ(w.reconcile().work().protect, 4u);
  Observed o = w.observe();
  o.pods.begin()->second.apps[0].ended = true;
  EXPECT_EQ(pods_to_keep(o, JobPhase::kRunning), 3u) << "a pod that has ended is not healthy";
}

}  // namespace
}  // namespace bsp::reconcile::sim
