// Jobs that Kueue admits and evicts; the test writes what Kueue writes. tests/e2e/kubernetes_kueue_test.py has the real one.
#include "operator/reconcile/kernel/start/kueue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using nlohmann::json;

void set_condition(World& w, const char* type, bool on, const char* reason, const char* message) {
  json& status = w.queued->workload["status"];
  if (!status.contains("conditions")) status["conditions"] = json::array();
  auto& all = status["conditions"].get_ref<json::array_t&>();
  std::erase_if(all, [&](const json& c) { return c["type"] == type; });
  all.push_back({{"type", type}, {"status", on ? "True" : "False"}, {"reason", reason}, {"message", message}});
}
std::string condition(const World& w, const char* type) {
  for (const json& c : w.queued->workload["status"]["conditions"])
    if (c["type"] == type) return c["status"];
  return "";
}
void admit(World& w) {
  w.queued->workload["status"]["admission"] = {{"clusterQueue", "all"}};
  set_condition(w, "QuotaReserved", true, "QuotaReserved", "");
  set_condition(w, "Admitted", true, "Admitted", "");
  if (condition(w, "Evicted") == "True") set_condition(w, "Evicted", false, "QuotaReserved", "Previously: stopped");
}
World queued(const Options& options = {}) {
  World w(options);
  w.queued = Queued{"team", {}};
  return w;
}
bool is_queued(const World& w) { return w.job.status.phase == JobPhase::kSuspended && w.job.status.reason == kQueued; }

TEST(Kueue, AJobWaitsWithoutPodsForItsAdmission) {
  World w = queued({.ranks = 3, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until([&] { return is_queued(w) && !w.queued->workload.is_null(); })) << w.trace;
  const json spec = w.queued->workload["spec"];
  EXPECT_EQ(spec["queueName"], "team");
  EXPECT_EQ(spec["active"], true);
  ASSERT_EQ(spec["podSets"].size(), 2u) << spec.dump(1);
  EXPECT_EQ(spec["podSets"][0]["name"], "fast");
  EXPECT_EQ(spec["podSets"][0]["count"].get<int>() + spec["podSets"][1]["count"].get<int>(), 3);
  const json pod = spec["podSets"][0]["template"]["spec"];
  json selector = {{w.job.spec.sets.label, "fast"}};
  for (const auto& [label, value] : names::kPlatformLabels) selector[std::string(label)] = value;
  EXPECT_EQ(pod["nodeSelector"], selector) << "so the flavor is that of the Set, and of nodes that can run a rank";
  EXPECT_EQ(pod["containers"].size(), 1u);
  EXPECT_EQ(w.queued->workload["metadata"]["ownerReferences"][0]["kind"], "BSPJob");
  set_condition(w, "QuotaReserved", false, "Pending",
                "insufficient unused quota for cpu in flavor fast, 1 more needed");
  ASSERT_TRUE(w.run_until([&] {
    return w.job.status.message ==
           "waits in LocalQueue team: insufficient unused quota for cpu in flavor fast, 1 more needed";
  })) << w.job.status.message;
  EXPECT_EQ(w.unrest(), "");
  EXPECT_TRUE(w.created.empty());
  admit(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  ASSERT_TRUE(w.run_until([&] { return condition(w, "PodsReady") == "True"; }));
  EXPECT_EQ(w.unrest(), "");
}

TEST(Kueue, AnEvictedJobReturnsItsQuotaOnceNoPodIsLeft) {
  World w = queued({.ranks = 2});
  ASSERT_TRUE(w.run_until([&] { return !w.queued->workload.is_null(); })) << w.trace;
  admit(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  set_condition(w, "Evicted", true, "ClusterQueueStopped", "The ClusterQueue is stopped");
  ASSERT_TRUE(w.run_until([&] {
    EXPECT_TRUE(w.pods.empty() || condition(w, "QuotaReserved") == "True") << "its pods still hold what it was given";
    return condition(w, "QuotaReserved") == "False";
  })) << w.trace;
  EXPECT_TRUE(w.pods.empty());
  EXPECT_TRUE(is_queued(w));
  EXPECT_EQ(w.job.status.attempt, 0u) << "an eviction is no failure";
  EXPECT_FALSE(w.queued->workload["status"].contains("admission"));
  EXPECT_EQ(condition(w, "Admitted"), "False");
  EXPECT_EQ(condition(w, "Requeued"), "False") << "the ClusterQueue says when";
  EXPECT_EQ(condition(w, "PodsReady"), "False");
  w.tick();
  EXPECT_TRUE(w.job.status.message.starts_with("waits in LocalQueue team: The ClusterQueue is stopped; it has no "))
      << w.job.status.message;
  EXPECT_EQ(w.unrest(), "");
  admit(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
}

TEST(Kueue, APreemptedJobIsQueuedAgain) {
  World w = queued();
  ASSERT_TRUE(w.run_until([&] { return !w.queued->workload.is_null(); }));
  admit(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  set_condition(w, "Evicted", true, "Preempted", "Preempted to accommodate another");
  ASSERT_TRUE(w.run_until([&] { return condition(w, "QuotaReserved") == "False"; })) << w.trace;
  EXPECT_EQ(condition(w, "Requeued"), "True");
}

TEST(Kueue, AnEvictionDuringAWaveEndsTheJobsPodsToo) {
  World w = queued({.ranks = 2});
  ASSERT_TRUE(w.run_until([&] { return !w.queued->workload.is_null(); }));
  admit(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until(JobPhase::kMigrating)) << w.trace;
  set_condition(w, "Evicted", true, "ClusterQueueStopped", "The ClusterQueue is stopped");
  ASSERT_TRUE(w.run_until([&] { return is_queued(w) && w.pods.empty(); })) << w.trace;
  EXPECT_EQ(w.violation, "");
}

TEST(Kueue, HearsOfTheEnd) {
  for (const int code : {0, 3}) {
    World w = queued({.ranks = 2, .supersteps = 5});
    w.job.spec.run_policy.backoff_limit = 0;
    ASSERT_TRUE(w.run_until([&] { return !w.queued->workload.is_null(); }));
    admit(w);
    if (code != 0) {
      ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
      w.end_program(0, code, 0);
    }
    ASSERT_TRUE(w.run_until([&] { return condition(w, "Finished") == "True"; })) << w.trace;
    EXPECT_EQ(w.unrest(), "");
  }
}

TEST(Kueue, AUserSuspendsAndResumesThroughIt) {
  World w = queued();
  ASSERT_TRUE(w.run_until([&] { return !w.queued->workload.is_null(); }));
  admit(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until([&] { return w.queued->workload["spec"]["active"] == false && w.pods.empty(); })) << w.trace;
  set_condition(w, "Evicted", true, "Deactivated", "The workload is deactivated");
  ASSERT_TRUE(w.run_until([&] { return condition(w, "QuotaReserved") == "False"; })) << w.trace;
  EXPECT_EQ(w.job.status.reason, "Suspended");
  w.job.spec.run_policy.suspend = false;
  ASSERT_TRUE(w.run_until([&] { return w.queued->workload["spec"]["active"] == true; })) << w.trace;
  EXPECT_TRUE(is_queued(w)) << w.job.status.reason;
  admit(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
}

TEST(Kueue, TheQueueOfAWaitingJobCanBeChanged) {
  World w = queued();
  ASSERT_TRUE(w.run_until([&] { return !w.queued->workload.is_null(); }));
  w.queued->queue = "other";
  ASSERT_TRUE(w.run_until([&] { return w.queued->workload["spec"]["queueName"] == "other"; }));
  admit(w);
  w.queued->queue = "third";
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.queued->workload["spec"]["queueName"], "other") << "Kueue refuses it while the job holds quota";
}

TEST(Kueue, AnythingInAWorkloadIsRead) {
  for (const char* text : {R"({})", R"([])", R"(7)", R"({"status":[]})", R"({"status":{"conditions":{}}})",
                           R"({"status":{"conditions":[7,{"type":4},{"type":"Admitted","status":true}]}})",
                           R"({"metadata":7,"spec":7,"status":{"conditions":[{"type":"Evicted","status":"True"}]}})"}) {
    World w = queued();
    w.queued->workload = json::parse(text);
    EXPECT_FALSE(admits(*w.queued));
    EXPECT_NE(why_held(*w.queued), "");
    const Observed o = w.observe();
    workload_writes(o, false);
  }
}

// Pods of as many ranks as the mapping puts together, each with one sidecar.
TEST(Kueue, AWorkloadCountsPods) {
  World w = queued({.ranks = 8, .slow = 2, .fast = 2, .slots = 3, .ranks_per_pod = 2});
  ASSERT_TRUE(w.run_until([&] { return is_queued(w) && !w.queued->workload.is_null(); })) << w.trace;
  std::map<std::pair<std::string, std::size_t>, int> pods;  // by Set and containers
  std::set<std::string> names;
  for (const json& set : w.queued->workload["spec"]["podSets"]) {
    const json& pod = set["template"]["spec"];
    pods[{pod["nodeSelector"][w.job.spec.sets.label], pod["containers"].size()}] += set["count"].get<int>();
    names.insert(set["name"]);
    EXPECT_EQ(pod["initContainers"].size(), 1u);
    EXPECT_EQ(pod["containers"].back()["name"], pod["containers"].size() == 2 ? "app-1" : "app");
  }
  // Three ranks on each slow node, two on a fast one.
  EXPECT_EQ(pods, (decltype(pods){{{"slow", 2}, 2}, {{"slow", 1}, 2}, {{"fast", 2}, 1}}));
  EXPECT_EQ(names.size(), 3u);
  admit(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.pods.size(), 5u);
}

}  // namespace
}  // namespace bsp::reconcile::sim
