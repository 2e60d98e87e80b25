// Starts that the cluster's scheduler makes all or nothing; the test is the scheduler. tests/e2e/kubernetes_gang_test.py has the real one.
#include "operator/reconcile/kernel/start/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/fields.h"
#include "operator/reconcile/kernel/status.h"
#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::Gang;
using crds::JobPhase;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Ne;
using testing::SizeIs;
using testing::StartsWith;

struct Gangs : testing::Test {
  explicit Gangs(const Options& options = {.ranks = 3}) : w(options) {
    w.capacity_may_come = true;
    w.job.spec.scheduling.gang = Gang::kPodGroup;
  }
  std::string condition(const char* type) const {
    const crds::Condition* c = crds::find_condition(w.job.status.conditions, type);
    return c && c->status == crds::ConditionStatus::kTrue ? c->reason : "";
  }
  // Of the next start: it is there.
  void make_group() {
    const auto& ranks = w.job.status.ranks;
    w.pod_group = {.name = pod_group_name(w.job, ranks.empty() ? 0 : ranks[0].generation, w.job.spec.ranks),
                   .made = true,
                   .refused = {}};
  }
  int events(const std::string& reason) const {
    return static_cast<int>(std::ranges::count(w.events, reason, &Event::reason));
  }
  World w;
};

TEST_F(Gangs, ThePodGroupIsMadeBeforeThePodsAndOnce) {
  w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kPending);
  ASSERT_THAT(w.pod_groups, SizeIs(1));
  EXPECT_THAT(w.pods, IsEmpty());
  EXPECT_EQ(w.pod_groups[0], make_pod_group(w.job, "job-job-uid", 3));
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.violation << w.trace;
  EXPECT_THAT(w.pod_groups, SizeIs(1));
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_EQ(w.unrest(), "");
  EXPECT_TRUE(w.reconcile().work().pod_group.is_null()) << "no pod waits in it";
}

TEST_F(Gangs, TheStartWaitsForTheSchedulerWithoutReservationOrLimit) {
  w.no_room = true;
  w.nodes.erase(w.nodes.begin() + 1, w.nodes.end());  // one slot for three ranks
  w.job.spec.sets.names = {w.nodes[0].set};
  make_group();
  const Step start = w.reconcile();
  ASSERT_TRUE(start.change());
  EXPECT_EQ(start.change()->status.phase, JobPhase::kStarting) << start.change()->status.message;
  EXPECT_THAT(start.change()->reserve, IsEmpty());
  const int limit = static_cast<int>(w.job_limits.start / kTick);
  for (int i = 0; i < 2 * limit; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kStarting);
  EXPECT_EQ(w.job.status.attempt, 0u);
  EXPECT_THAT(w.pods, SizeIs(3));
  EXPECT_EQ(
      w.job.status.message,
      "job-r0-g0 of rank 0 finds no node: 0/4 nodes are available, job-r1-g0 of rank 1 finds no node: 0/4 nodes are "
      "available, job-r2-g0 of rank 2 finds no node: 0/4 nodes are available");
  w.pod_groups.clear();  // somebody deletes it
  w.tick();
  EXPECT_THAT(w.pod_groups, SizeIs(1)) << "pods wait in it";
  for (const char* node : {"new-1", "new-2"}) w.nodes.push_back({.name = node, .set = w.nodes[0].set});
  w.place_pods();
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.violation << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
}

TEST_F(Gangs, ReserveWaitsWithoutPodsInTheSameCluster) {
  w.job.spec.scheduling.gang = Gang::kReserve;
  w.nodes.erase(w.nodes.begin() + 1, w.nodes.end());
  w.job.spec.sets.names = {w.nodes[0].set};
  for (int i = 0; i < 20; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kPending);
  EXPECT_THAT(w.pods, IsEmpty());
  EXPECT_THAT(w.pod_groups, IsEmpty());
}

TEST_F(Gangs, OnceAPodHasItsNodeTheStartHasItsUsualLimit) {
  w.no_room = true;
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 3; }));
  for (int i = 0; i < static_cast<int>(w.job_limits.start / kTick); ++i) w.tick();
  w.slow_start = 1 << 29;  // their containers never start
  w.place_pods();
  for (int i = 0; i < static_cast<int>(w.job_limits.start / kTick) - 5; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kStarting) << "it counts from the node";
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1; }, 20)) << w.trace;
  EXPECT_EQ(w.job.status.restarts.back().reason, "StartTimeout");
}

TEST_F(Gangs, OnlyATimeInWhichAllPodsWaitForNodesDoesNotCount) {
  Observed o;
  o.job = w.job;
  o.job.spec.ranks = 2;
  o.job.status.phase = JobPhase::kStarting;
  o.job.status.ranks.resize(2);
  o.job.status.ranks[0].pod = "a";
  o.job.status.ranks[1].pod = "b";
  o.capacity_may_come = true;
  JobClocks clocks;
  const auto after = [&](int seconds) {
    o.steady = SteadyTime(std::chrono::seconds(1000 + seconds));
    clocks.fill(o);
    return to_seconds(o.start_counts_for);
  };
  after(0);
  EXPECT_EQ(after(10), 10) << "no pod can be created: a quota, say";
  o.pods["a"];
  EXPECT_EQ(after(20), 20);
  o.pods["b"];
  EXPECT_EQ(after(30), 0);
  EXPECT_EQ(after(3600), 0);
  EXPECT_EQ(to_seconds(o.starting_for), 3600);
  o.pods["a"].node = "n";
  EXPECT_EQ(after(3610), 0) << "from when it was seen";
  EXPECT_EQ(after(3620), 10);
  o.job.spec.scheduling.gang = Gang::kReserve;
  o.pods["a"].node = "";
  EXPECT_EQ(after(3630), 20) << "who reserves has a limit";
}

TEST_F(Gangs, AClusterWithoutANodeIsWaitedFor) {
  w.nodes.clear();
  w.job.spec.sets.names.clear();
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kPending);
  EXPECT_EQ(w.job.status.reason, "NoCapacity");
  EXPECT_EQ(w.unrest(), "");
}

// A pool that is scaled to zero: an autoscaler adds nodes for pods that wait, and for nothing else.
TEST_F(Gangs, PodsWaitForASetWithoutNodes) {
  w.no_room = true;
  w.nodes.clear();
  w.job.spec.sets.names = {"slow"};
  ASSERT_TRUE(w.run_until([&] { return w.pods.size() == 3; }, 20)) << w.job.status.message;
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kStarting);
  for (const PodRequest& pod : w.created) EXPECT_EQ(pod.set, "slow");
  EXPECT_EQ(events("NoSuchSet"), 1);
  EXPECT_THAT(std::ranges::find(w.events, "NoSuchSet", &Event::reason)->message,
              HasSubstr("no node belongs to Set slow"));
  EXPECT_EQ(w.unrest(), "");
  for (const char* node : {"new-1", "new-2", "new-3"}) w.nodes.push_back({.name = node, .set = "slow"});
  w.place_pods();
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.violation << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
  for (const auto& place : w.job.status.ranks) EXPECT_THAT(place.node, StartsWith("new-"));
}

TEST_F(Gangs, RanksStartInTheSetsThatHaveNodes) {
  std::erase_if(w.nodes, [](const auto& node) { return node.set == "slow"; });
  w.nodes.push_back({.name = "fast-2", .set = "fast"});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.violation << w.trace;
  for (const auto& place : w.job.status.ranks) EXPECT_EQ(place.set, "fast");
  EXPECT_EQ(events("NoSuchSet"), 0);
}

TEST_F(Gangs, ReserveWaitsForASetWithoutNodesWithoutPods) {
  w.job.spec.scheduling.gang = Gang::kReserve;
  std::erase_if(w.nodes, [](const auto& node) { return node.set == "fast"; });
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kPending);
  EXPECT_EQ(w.job.status.reason, "NoSuchSet");
  EXPECT_THAT(w.pods, IsEmpty());
  EXPECT_EQ(w.unrest(), "");
}

TEST_F(Gangs, NodesInUseByOtherJobsTakeRanksOfAStartThatWaits) {
  for (auto& node : w.nodes) node.cordoned = true;  // as a node without a free slot is shown
  make_group();
  Observed o = w.observe();
  for (const auto& node : o.nodes) o.queue.on_node[node.name] = node.set == "fast" ? 2 : 0;
  const Step step = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
  ASSERT_TRUE(step.change());
  EXPECT_EQ(step.change()->status.phase, JobPhase::kStarting);
  for (const auto& place : step.change()->status.ranks) EXPECT_EQ(place.set, "fast") << place.rank.value;
}

TEST_F(Gangs, NoReserveStartWaitsForOneThatHasNoNodes) {
  SharedNodes cluster;
  World gang({.name = "gang", .ranks = 3, .cluster = &cluster}),
      other({.name = "other", .ranks = 3, .cluster = &cluster});
  gang.capacity_may_come = other.capacity_may_come = true;
  gang.no_room = true;
  gang.job.spec.scheduling.gang = Gang::kPodGroup;
  for (int i = 0; i < 20; ++i) gang.tick(), other.tick();
  EXPECT_EQ(gang.job.status.phase, JobPhase::kStarting);
  EXPECT_THAT(gang.pods, SizeIs(3));
  EXPECT_FALSE(cluster.reservations.of_job.contains("default/gang"));
  EXPECT_EQ(other.job.status.phase, JobPhase::kRunning) << other.trace;
  EXPECT_EQ(gang.violation + other.violation, "");
}

TEST_F(Gangs, EveryAttemptHasThePodGroupBeforeItsPods) {
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.pod_groups.clear();
  w.end_program(1, 3, 0);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }))
      << w.violation << w.trace;
  EXPECT_EQ(w.pod_groups, std::vector{make_pod_group(w.job, "job-job-uid-1", 3)});
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until([&] { return w.job.status.phase == JobPhase::kSuspended && w.pods.empty(); })) << w.trace;
  w.pod_groups.clear();
  w.job.spec.run_policy.suspend = false;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.violation << w.trace;
  EXPECT_THAT(w.pod_groups, SizeIs(1));
}

// The group that a pod names, of whichever kind.
std::string group_of(const json& pod) {
  const json& metadata = part_at(pod, "metadata");
  return text_at(part_at(part_at(pod, "spec"), "schedulingGroup"), "podGroupName") +
         text_at(part_at(metadata, "labels"), "scheduling.x-k8s.io/pod-group") +
         text_at(part_at(metadata, "annotations"), "scheduling.k8s.io/group-name");
}

// Its pod stays in the API with its node, and schedulers count it: with it, two of three ranks would be enough.
TEST_F(Gangs, APodOnALostNodeIsNoMemberOfTheNextStart) {
  for (const Gang gang : {Gang::kPodGroup, Gang::kSchedulerPlugins, Gang::kVolcano})
    for (const bool suspends : {false, true}) {
      SCOPED_TRACE(std::format("{} {}", crds::to_string(gang), suspends));
      World v({.ranks = 3});
      v.capacity_may_come = true;
      v.job.spec.scheduling.gang = gang;
      ASSERT_TRUE(v.run_until(JobPhase::kRunning)) << v.trace;
      v.migrate_by_hand("m", 0, "fast");
      ASSERT_TRUE(v.run_until([&] { return v.job.status.migrations.succeeded == 1 && v.pods.size() == 3; })) << v.trace;
      const std::string lost = v.job.status.ranks[1].pod;
      v.lose_node(v.job.status.ranks[1].node);
      v.job.spec.run_policy.suspend = suspends;
      ASSERT_TRUE(v.run_until([&] { return v.pods.size() == 1; })) << v.trace;
      v.job.spec.run_policy.suspend = false;
      ASSERT_TRUE(v.run_until(JobPhase::kRunning)) << v.violation << v.trace;
      ASSERT_THAT(v.pods, SizeIs(4)) << "the lost one, too\n" << v.trace;
      const std::string group = group_of(v.pod_of(0)->object);
      EXPECT_THAT(group, Ne(""));
      for (const auto& [name, pod] : v.pods)
        EXPECT_EQ(group_of(pod.object) == group, name != lost) << name << " in " << group_of(pod.object);
    }
}

TEST_F(Gangs, ATargetJoinsTheGroupOfItsSource) {
  w.job.spec.scheduling.gang = Gang::kVolcano;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.end_program(1, 3, 0);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }))
      << w.trace;
  const std::string group = group_of(w.pod_of(1)->object);
  for (const char* set : {"fast", "slow"}) {
    w.pod_groups.clear();
    w.migrate_by_hand(set, 0, set);
    ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration(set).status.phase) && w.pods.size() == 3; }))
        << w.trace;
    EXPECT_EQ(group_of(w.pod_of(0)->object), group);
    ASSERT_THAT(w.pod_groups, SizeIs(1));
    EXPECT_EQ(w.pod_groups[0]["metadata"]["name"], group);
  }
}

TEST_F(Gangs, AnOperatorThatDiesInBetweenMakesNoPodWithoutIt) {
  for (int stores = 0; stores < 4; ++stores) {
    World v({.ranks = 3});
    v.capacity_may_come = true;
    v.job.spec.scheduling.gang = Gang::kVolcano;
    v.die_after_stores = stores;
    ASSERT_TRUE(v.run_until(JobPhase::kRunning)) << stores << v.violation << v.trace;
  }
}

TEST_F(Gangs, AnApiThatIsNotServedIsNamedWithItsRemedyAndWaitedFor) {
  w.no_pod_groups = Error{ErrorCode::kUnavailable,
                          "the API server doesn't serve PodGroup of scheduling.k8s.io/v1beta1; is its "
                          "CustomResourceDefinition installed?",
                          true};
  for (int i = 0; i < 3000; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kPending);
  EXPECT_EQ(w.job.status.attempt, 0u) << "nothing is restarted";
  EXPECT_THAT(w.pods, IsEmpty());
  EXPECT_EQ(w.job.status.reason, kPodGroupRefused);
  EXPECT_EQ(
      w.job.status.message,
      "spec.scheduling.gang is PodGroup, and its PodGroup can't be created: the API server doesn't serve PodGroup of "
      "scheduling.k8s.io/v1beta1; is its CustomResourceDefinition installed?; turn on Kubernetes 1.37's feature gate "
      "GenericWorkload and its API scheduling.k8s.io/v1beta1 (of 1.36: GenericWorkload, GangScheduling and v1alpha2), "
      "or create the job again with Reserve");
  EXPECT_EQ(condition(kPodGroupRefused), "NotServed");
  EXPECT_EQ(events(kPodGroupRefused), 1) << "reported once";
  EXPECT_EQ(w.unrest(), "");
  w.no_pod_groups.reset();
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(condition(kPodGroupRefused), "");
}

TEST_F(Gangs, AMissingRightNamesTheChartsValue) {
  w.job.spec.scheduling.gang = Gang::kSchedulerPlugins;
  w.no_pod_groups = Error{
      ErrorCode::kRefused,
      "podgroups.scheduling.x-k8s.io is forbidden: User \"operator\" cannot create resource \"podgroups\"", false};
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(condition(kPodGroupRefused), "Forbidden");
  EXPECT_THAT(w.job.status.message, HasSubstr("set gangScheduling.enabled of the operator's chart"));
  w.no_pod_groups =
      Error{ErrorCode::kRefused,
            "podgroups.scheduling.k8s.io \"g\" is forbidden: no PriorityClass with name high was found", false};
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(condition(kPodGroupRefused), "Refused") << "the right is there";
  EXPECT_THAT(w.job.status.message, testing::EndsWith("no PriorityClass with name high was found"));
  w.no_pod_groups = Error{ErrorCode::kInvalid, "admission webhook denied the request: queue x is closed", false};
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(condition(kPodGroupRefused), "Refused") << "it says why now";
  EXPECT_THAT(w.job.status.message, testing::EndsWith("denied the request: queue x is closed"));
  EXPECT_EQ(events(kPodGroupRefused), 1);
  w.no_pod_groups = Error{ErrorCode::kUnavailable, "etcd is away", true};
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(condition(kPodGroupRefused), "Refused") << "an API server that can't answer may well serve it";
  EXPECT_THAT(w.job.status.message, testing::EndsWith("can't be created: etcd is away"));
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended)) << w.trace;
  EXPECT_EQ(condition(kPodGroupRefused), "") << "it waits no more";
}

TEST_F(Gangs, AJobThatIsDeletedMakesNoneAndGoes) {
  for (const bool waits : {true, false}) {
    World v({.ranks = 2});
    v.capacity_may_come = true;
    v.job.spec.scheduling.gang = Gang::kVolcano;
    if (waits) v.no_pod_groups = Error{ErrorCode::kUnavailable, "not served", true};
    if (waits)
      v.tick();
    else
      ASSERT_TRUE(v.run_until(JobPhase::kRunning)) << v.trace;
    v.no_pod_groups.reset();
    v.pod_groups.clear();
    v.remove_job();
    ASSERT_TRUE(v.run_until([&] { return v.removed; })) << v.trace;
    EXPECT_THAT(v.pod_groups, IsEmpty()) << "the owner's deletion takes it along";
  }
}

TEST_F(Gangs, AMoveWaitsForNoGroup) {
  for (const Gang gang : {Gang::kPodGroup, Gang::kSchedulerPlugins, Gang::kVolcano}) {
    World v({.ranks = 2});
    v.capacity_may_come = true;
    v.job.spec.scheduling.gang = gang;
    ASSERT_TRUE(v.run_until(JobPhase::kRunning)) << v.trace;
    v.pod_groups.clear();
    v.no_pod_groups = Error{ErrorCode::kUnavailable, "not served", true};
    v.migrate_by_hand("m", 0, "fast");
    ASSERT_TRUE(v.run_until([&] { return crds::is_finished(v.migration("m").status.phase); })) << v.trace;
    EXPECT_EQ(v.migration("m").status.phase, migrate::Phase::kSucceeded) << v.trace;
    ASSERT_TRUE(v.run_until([&] { return v.pods.size() == 2; })) << "the source's slot is free again";
    v.no_pod_groups.reset();
    v.migrate_by_hand("back", 0, "slow");
    ASSERT_TRUE(v.run_until([&] { return crds::is_finished(v.migration("back").status.phase); })) << v.trace;
    EXPECT_EQ(v.migration("back").status.phase, migrate::Phase::kSucceeded) << v.migration("back").status.message;
    EXPECT_EQ(v.pod_groups.size(), gang == Gang::kVolcano ? 1u : 0u) << "the group of a target of Volcano's\n"
                                                                     << v.trace;
    expect_goes_on(v);
  }
}

TEST_F(Gangs, OneMachineStartsAsWithReserve) {
  w.capacity_may_come = false;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_THAT(w.pod_groups, IsEmpty());
  EXPECT_EQ(condition(kGangNotEnsured), "NoScheduler");
  EXPECT_EQ(events(kGangNotEnsured), 1);
  EXPECT_EQ(crds::find_condition(w.job.status.conditions, kGangNotEnsured)->message,
            with_remedy(kGangNotEnsured,
                        "spec.scheduling.gang is PodGroup, and one machine has no scheduler: the ranks start as with "
                        "Reserve"));
}

TEST_F(Gangs, OfSchedulerPluginsNeedASchedulersName) {
  w.job.spec.scheduling.gang = Gang::kSchedulerPlugins;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(condition(kGangNotEnsured), "SchedulerNotNamed");
  EXPECT_EQ(w.unrest(), "");
  for (const Gang gang : {Gang::kSchedulerPlugins, Gang::kPodGroup, Gang::kVolcano, Gang::kReserve}) {
    World named({.ranks = 2});
    named.capacity_may_come = true;
    named.job.spec.scheduling.gang = gang;
    if (gang == Gang::kSchedulerPlugins) named.job.spec.pod_template["spec"]["schedulerName"] = "scheduler-plugins";
    ASSERT_TRUE(named.run_until(JobPhase::kRunning)) << named.trace;
    EXPECT_FALSE(is_true(named, kGangNotEnsured)) << crds::to_string(gang);
  }
}

}  // namespace
}  // namespace bsp::reconcile::sim
