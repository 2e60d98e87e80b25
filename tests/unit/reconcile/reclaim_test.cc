// What becomes of the checkpoint sets of a job that is deleted: with a storage that refuses or hangs, pods that can't be made, a namespace
// that goes, operators that are lost, and another job that still needs the sets.
#include "operator/reconcile/kernel/checkpoints/reclaim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/reconcile/every_place.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kMinute = 300;  // ticks

World with_sets() {
  World w({.ranks = 3, .slow = 3, .fast = 3});
  stores_sets(w);
  w.can_remove_sets = true;
  EXPECT_TRUE(has_stored(w, 2)) << w.trace;
  return w;
}
bool goes(World& w, int ticks = 100) {
  return w.run_until([&] { return w.removed; }, ticks);
}
int told(const World& w, const std::string& reason) {
  return static_cast<int>(std::ranges::count(w.events, reason, &Event::reason));
}
std::string message(const World& w, const std::string& reason) {
  const auto event = std::ranges::find(w.events, reason, &Event::reason);
  return event == w.events.end() ? "" : event->message;
}

TEST(Reclaim, TheSetsGoBeforeTheJob) {
  World w = with_sets();
  w.remove_job();
  ASSERT_TRUE(goes(w)) << w.trace;
  EXPECT_EQ(w.violation, "");
  EXPECT_THAT(w.storage, IsEmpty());
  EXPECT_EQ(w.removers, 1);
  EXPECT_FALSE(w.has_event(kSetsLeft));
  EXPECT_FALSE(w.has_event(kSetsNotRemoved)) << "nothing was wrong";
}

TEST(Reclaim, OfAJobThatHasEndedOrIsSuspendedToo) {
  for (const JobPhase phase : {JobPhase::kSuspended, JobPhase::kFailed}) {
    World w = with_sets();
    if (phase == JobPhase::kSuspended)
      w.job.spec.run_policy.suspend = true;
    else
      w.job.spec.run_policy.active_deadline_seconds = 1;
    ASSERT_TRUE(w.run_until(phase)) << w.trace;
    ASSERT_FALSE(w.storage.empty());
    w.remove_job();
    ASSERT_TRUE(goes(w)) << w.trace;
    EXPECT_THAT(w.storage, IsEmpty());
  }
}

TEST(Reclaim, RetainKeepsThem) {
  World w = with_sets();
  w.job.spec.checkpoint.reclaim_policy = crds::ReclaimPolicy::kRetain;
  w.remove_job();
  ASSERT_TRUE(goes(w)) << w.trace;
  EXPECT_FALSE(w.storage.empty());
  EXPECT_EQ(w.removers, 1) << "they were marked as what would go later, too";
  EXPECT_FALSE(w.has_event(kSetsLeft));
}

TEST(Reclaim, WhatIsRetainedFromTheBeginningNeedsNoPod) {
  World w({.ranks = 3, .slow = 3, .fast = 3});
  stores_sets(w);
  w.can_remove_sets = true;
  w.job.spec.checkpoint.reclaim_policy = crds::ReclaimPolicy::kRetain;
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  EXPECT_FALSE(w.job.status.checkpoint->marked);
  w.remove_job();
  ASSERT_TRUE(goes(w)) << w.trace;
  EXPECT_FALSE(w.storage.empty());
  EXPECT_EQ(w.removers, 0);
}

TEST(Reclaim, AMarkThatStaysOnWhatIsRetainedIsTold) {
  World w = with_sets();
  w.job.spec.checkpoint.reclaim_policy = crds::ReclaimPolicy::kRetain;
  w.storage_refuses = "AccessDenied";
  w.sets_used_by = "next";  // they aren't removed, so nobody is in the way
  w.remove_job();
  ASSERT_TRUE(goes(w, 5 * kMinute)) << w.trace;
  EXPECT_THAT(message(w, kSetsLeft), AllOf(HasSubstr("of-…"), HasSubstr("AccessDenied")));
}

TEST(Reclaim, NoPodIsMadeWhereThereIsNothingToRemove) {
  World never({.ranks = 3});
  stores_sets(never, "1h");
  never.can_remove_sets = true;
  ASSERT_TRUE(never.run_until(JobPhase::kStarting));
  never.job.status.checkpoint = crds::CheckpointStatus{};
  never.remove_job();
  ASSERT_TRUE(goes(never)) << never.trace;
  EXPECT_EQ(never.removers, 0);
  World without({.ranks = 3});
  without.can_remove_sets = true;
  ASSERT_TRUE(without.run_until(JobPhase::kRunning));
  without.remove_job();
  ASSERT_TRUE(goes(without)) << without.trace;
  EXPECT_EQ(without.removers, 0);
}

TEST(Reclaim, AStatusThatSaysNothingOfSetsDoesNotLeaveThem) {
  World w = with_sets();
  w.job.status.checkpoint.reset();
  w.remove_job();
  ASSERT_TRUE(goes(w)) << w.trace;
  EXPECT_THAT(w.storage, IsEmpty());
}

TEST(Reclaim, WhereNoPodCanRemoveThemTheJobGoesAsBefore) {
  World w = with_sets();
  w.can_remove_sets = false;  // local mode, whose command removes them itself
  w.remove_job();
  ASSERT_TRUE(goes(w)) << w.trace;
  EXPECT_EQ(w.removers, 0);
}

TEST(Reclaim, AStorageThatRefusesIsNamedAndGivenUp) {
  World w = with_sets();
  w.storage_refuses = "AccessDenied";
  w.remove_job();
  ASSERT_FALSE(goes(w, 2 * kMinute)) << "it is tried for three minutes";
  EXPECT_EQ(w.violation, "");
  const crds::Condition* refused = crds::find_condition(w.job.status.conditions, kSetsNotRemoved);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "StorageRefused");
  EXPECT_THAT(refused->message, AllOf(HasSubstr("AccessDenied"), HasSubstr("SetsLeft")));
  EXPECT_EQ(told(w, kSetsNotRemoved), 1) << "said once";
  ASSERT_TRUE(goes(w, 2 * kMinute)) << w.trace;
  EXPECT_EQ(w.violation, "");
  EXPECT_EQ(told(w, kSetsLeft), 1);
  EXPECT_THAT(message(w, kSetsLeft), AllOf(HasSubstr("/sets/job-uid"), HasSubstr("AccessDenied")));
}

TEST(Reclaim, AStorageThatLetsGoInTheEndLeavesNothing) {
  World w = with_sets();
  w.storage_refuses = "AccessDenied";
  w.remove_job();
  ASSERT_FALSE(goes(w, kMinute));
  w.storage_refuses.clear();
  ASSERT_TRUE(goes(w)) << w.trace;
  EXPECT_THAT(w.storage, IsEmpty());
  EXPECT_FALSE(w.has_event(kSetsLeft));
}

TEST(Reclaim, AStorageThatHangsDoesNotHoldTheJobForEver) {
  World w = with_sets();
  w.storage_hangs = true;
  w.remove_job();
  ASSERT_FALSE(goes(w, 2 * kMinute));
  ASSERT_TRUE(goes(w, 2 * kMinute)) << w.trace;
  EXPECT_EQ(told(w, kSetsLeft), 1);
}

TEST(Reclaim, APodThatIsRefusedIsNamedAndGivenUp) {
  World w = with_sets();
  w.no_remover = Error{ErrorCode::kRefused, "exceeded quota: pods"};
  w.remove_job();
  ASSERT_FALSE(goes(w, kMinute));
  EXPECT_THAT(message(w, kSetsNotRemoved), HasSubstr("exceeded quota"));
  w.no_remover.reset();
  ASSERT_TRUE(goes(w)) << w.trace;
  EXPECT_THAT(w.storage, IsEmpty());
  World always = with_sets();
  always.no_remover = Error{ErrorCode::kRefused, "exceeded quota: pods"};
  always.remove_job();
  ASSERT_TRUE(goes(always, 6 * kMinute)) << always.trace;
  EXPECT_THAT(message(always, kSetsLeft), HasSubstr("exceeded quota"));
}

TEST(Reclaim, ANamespaceThatGoesIsNotHeld) {
  World w = with_sets();
  w.no_remover =
      Error{ErrorCode::kRefused,
            "pods \"job-reclaim\" is forbidden: unable to create new content in namespace default because it "
            "is being terminated"};
  w.remove_job();
  ASSERT_TRUE(goes(w)) << w.trace;
  EXPECT_EQ(told(w, kSetsLeft), 1);
}

TEST(Reclaim, APodThatItsNodeEndsIsMadeAgain) {
  World w = with_sets();
  w.storage_hangs = true;
  w.remove_job();
  ASSERT_TRUE(w.run_until([&] { return w.remover.has_value(); })) << w.trace;
  w.remover->failed = true;
  ASSERT_TRUE(w.run_until([&] { return w.removers == 2; })) << w.trace;
  w.storage_hangs = false;
  ASSERT_TRUE(goes(w)) << w.trace;
  EXPECT_THAT(w.storage, IsEmpty());
}

TEST(Reclaim, WhatAnotherJobNeedsIsNeverRemoved) {
  World w = with_sets();
  w.sets_used_by = "next";
  w.remove_job();
  ASSERT_FALSE(goes(w, kMinute));
  EXPECT_EQ(w.removers, 0);
  EXPECT_THAT(message(w, kSetsNotRemoved), HasSubstr("job next goes on from them"));
  w.sets_used_by.clear();  // it has stored its own
  ASSERT_TRUE(goes(w)) << w.trace;
  EXPECT_THAT(w.storage, IsEmpty());
  World always = with_sets();
  always.sets_used_by = "next";
  always.remove_job();
  ASSERT_TRUE(goes(always, 6 * kMinute)) << always.trace;
  EXPECT_FALSE(always.storage.empty());
  EXPECT_THAT(message(always, kSetsLeft), HasSubstr("job next"));
}

// Before and after each write, whatever the storage does, and again and again.
TEST(Reclaim, AnOperatorThatIsLostGoesOnWithIt) {
  for (const char* refuses : {"", "AccessDenied"})
    for (int stores = -1; stores < 3; ++stores)
      for (const int every : {0, 1, 7, 50}) {
        World w = with_sets();
        w.storage_refuses = refuses;
        w.remove_job();
        w.die_after_stores = stores;
        for (int i = 0; i < 10 * kMinute && !w.removed && w.violation.empty(); ++i) {
          // Each of them counts the three minutes anew, so it ends once one of them stays.
          if (every && i < kMinute && i % every == 0) w.restart_operator();
          w.tick();
        }
        ASSERT_EQ(w.violation, "") << stores << " " << every << w.trace;
        ASSERT_TRUE(w.removed) << stores << " " << every << w.trace;
        EXPECT_EQ(w.storage.empty(), *refuses == '\0');
        EXPECT_EQ(w.has_event(kSetsLeft), !w.storage.empty());
        EXPECT_LE(w.removers, 1);
      }
}

TEST(Reclaim, WritesThatConflictAreMadeAgain) {
  World w = with_sets();
  w.storage_refuses = "AccessDenied";
  w.remove_job();
  w.conflicts = 5;
  ASSERT_TRUE(goes(w, 7 * kMinute)) << w.trace;
  EXPECT_EQ(told(w, kSetsLeft), 1);
}

// --- The pod --------------------------------------------------------------------------------------------

crds::BspJob job_in(const json& storage, const json& pod_spec = json::object()) {
  crds::BspJob job;
  job.metadata.name = "lbm";
  job.metadata.name_space = "team";
  job.metadata.uid = "0a1b2c3d-4e5f";
  job.spec.pod_template = {{"metadata", {{"labels", {{"app", "solver"}, {"migbsp.io/job", "another"}}}}},
                           {"spec", {{"containers", {{{"name", "app"}, {"image", "evil"}}}}}}};
  job.spec.pod_template["spec"].update(pod_spec);
  job.spec.checkpoint.storage.emplace();
  if (storage.contains("claim"))
    job.spec.checkpoint.storage->persistent_volume_claim = crds::ClaimSource{storage["claim"]};
  if (storage.contains("bucket"))
    job.spec.checkpoint.storage->s3 = crds::S3Source{.endpoint = "https://s3.storage:9000",
                                                     .bucket = storage["bucket"],
                                                     .prefix = "team",
                                                     .credentials_secret = "keys",
                                                     .ca_secret = "ca"};
  return job;
}
std::string variable(const json& container, const std::string& name) {
  for (const json& entry : container["env"])
    if (entry["name"] == name) return entry["value"];
  return "";
}

TEST(ReclaimPod, RunsNothingOfTheUsersAndKnowsOneJobOnly) {
  const json pod = make_remover(job_in({{"bucket", "sets"}}, {{"tolerations", {{{"operator", "Exists"}}}},
                                                              {"nodeSelector", {{"disk", "fast"}}},
                                                              {"initContainers", {{{"name", "mine"}}}},
                                                              {"serviceAccountName", "powerful"},
                                                              {"priorityClassName", "high"},
                                                              {"volumes", {{{"name", "data"}}}},
                                                              {"imagePullSecrets", {{{"name", "pull"}}}}}),
                                {.scheduled = true, .runtime_image = "bsp-runtime:1", .user_namespace = true});
  EXPECT_EQ(pod["metadata"]["name"], "lbm-0a1b2c3d-reclaim");
  EXPECT_EQ(pod["metadata"]["namespace"], "team");
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["uid"], "0a1b2c3d-4e5f");
  EXPECT_EQ(pod["metadata"]["labels"], json({{"app", "solver"}, {"migbsp.io/job", "lbm"}}));
  const json& spec = pod["spec"];
  ASSERT_EQ(spec["containers"].size(), 1u);
  EXPECT_FALSE(spec.contains("initContainers"));
  EXPECT_FALSE(spec.contains("serviceAccountName"));
  EXPECT_FALSE(spec.contains("priorityClassName"));
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  EXPECT_EQ(spec["hostUsers"], false);
  EXPECT_EQ(spec["restartPolicy"], "OnFailure");
  EXPECT_EQ(spec["tolerations"][0]["operator"], "Exists");
  EXPECT_EQ(spec["nodeSelector"]["disk"], "fast");
  EXPECT_EQ(spec["nodeSelector"]["kubernetes.io/arch"], "amd64");
  EXPECT_EQ(spec["imagePullSecrets"][0]["name"], "pull");
  const json& container = spec["containers"][0];
  EXPECT_EQ(container["name"], kReclaimContainer);
  EXPECT_EQ(container["image"], "bsp-runtime:1");
  EXPECT_EQ(container["command"], json({"/bsp/bsp-sidecar", "--remove-sets"}));
  EXPECT_EQ(container["securityContext"]["runAsNonRoot"], true);
  EXPECT_FALSE(container["securityContext"]["capabilities"].contains("add"));
  EXPECT_EQ(variable(container, "BSP_JOB_UID"), "0a1b2c3d-4e5f");
  EXPECT_EQ(variable(container, "BSP_STORAGE"), "s3://sets/team");
  EXPECT_EQ(variable(container, "BSP_STORAGE_CA"), "/run/bsp-s3-ca/ca.crt");
  ASSERT_EQ(spec["volumes"].size(), 2u) << "the keys and the CA, and nothing of the user's";
  for (const json& volume : spec["volumes"])
    EXPECT_EQ(volume["secret"]["optional"], true) << "without it the container says what is missing";
}

TEST(ReclaimPod, ReachesAClaimAsTheSidecarsDo) {
  const json plain = make_remover(job_in({{"claim", "sets"}}), {.scheduled = true});
  EXPECT_EQ(plain["spec"]["securityContext"]["fsGroup"], 64600);
  EXPECT_EQ(plain["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "sets");
  EXPECT_FALSE(plain["spec"].contains("hostUsers"));
  const json own = make_remover(
      job_in({{"claim", "sets"}}, {{"securityContext", {{"fsGroup", 7}, {"runAsUser", 5}}}, {"hostUsers", true}}),
      {.scheduled = true, .user_namespace = true});
  EXPECT_EQ(own["spec"]["securityContext"], json({{"fsGroup", 7}}));
  EXPECT_EQ(own["spec"]["hostUsers"], true);
  // Where the sidecars get no group because the template mounts claims of its own, it gets none either.
  const json beside = make_remover(
      job_in({{"claim", "sets"}}, {{"volumes", {{{"name", "d"}, {"persistentVolumeClaim", {{"claimName", "d"}}}}}}}),
      {.scheduled = true});
  EXPECT_FALSE(beside["spec"].contains("securityContext"));
  EXPECT_EQ(beside["spec"]["volumes"].size(), 1u);
}

json a_pod(const json& status) { return {{"metadata", {{"uid", "u"}}}, {"status", status}}; }

TEST(ReclaimPod, SaysWhatTheStorageSaid) {
  EXPECT_TRUE(remover_facts(a_pod({{"phase", "Succeeded"}})).done);
  const RemoverFacts evicted = remover_facts(a_pod({{"phase", "Failed"}, {"message", "low on memory"}}));
  EXPECT_TRUE(evicted.failed && !evicted.done);
  EXPECT_EQ(evicted.said, "low on memory");
  const json ended = {{"terminated", {{"exitCode", 1}, {"reason", "Error"}, {"message", "AccessDenied"}}}};
  const json again = {{"waiting", {{"reason", "CrashLoopBackOff"}, {"message", "back-off 10s"}}}};
  const RemoverFacts tries = remover_facts(
      a_pod({{"phase", "Running"},
             {"containerStatuses", {{{"name", kReclaimContainer}, {"state", again}, {"lastState", ended}}}}}));
  EXPECT_EQ(tries.said, "AccessDenied");
  EXPECT_EQ(tries.waits, "");
  EXPECT_FALSE(tries.done || tries.failed);
  const json killed = {{"terminated", {{"exitCode", 137}, {"reason", "OOMKilled"}}}};
  EXPECT_THAT(remover_facts(a_pod({{"containerStatuses", {{{"name", kReclaimContainer}, {"state", killed}}}}})).said,
              HasSubstr("OOMKilled"));
  const json starts = {{"waiting", {{"reason", "ContainerCreating"}}}};
  EXPECT_EQ(remover_facts(a_pod({{"containerStatuses", {{{"name", kReclaimContainer}, {"state", starts}}}}})).waits,
            "ContainerCreating");
  EXPECT_EQ(
      remover_facts(a_pod({{"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "no node"}}}}}))
          .waits,
      "no node");
}

TEST(ReclaimPod, AnythingAtAnyPlaceOfItIsRead) {
  const json whole = a_pod({{"phase", "Succeeded"},
                            {"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "m"}}}},
                            {"containerStatuses",
                             {{{"name", kReclaimContainer},
                               {"state", {{"waiting", {{"reason", "r"}, {"message", "m"}}}}},
                               {"lastState", {{"terminated", {{"reason", "Error"}, {"message", "m"}}}}}}}}});
  hostile::at_every_place(whole, [](const json& pod, const auto&) { (void)remover_facts(pod); });
}

}  // namespace
}  // namespace bsp::reconcile::sim
