// PodGroups as objects, and what the pods of each kind of gang have; gang_test.cc starts jobs in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/fields.h"
#include "operator/reconcile/kernel/start/gang.h"
#include "operator/reconcile/kernel/status.h"
#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::Gang;
using crds::JobPhase;
using nlohmann::json;
using testing::Ne;
using testing::SizeIs;
using testing::StartsWith;

crds::BspJob job_of(Gang gang, const json& metadata = json::object(), json spec = json::object()) {
  crds::BspJob job;
  job.metadata.name = "job";
  job.metadata.name_space = "science";
  job.metadata.uid = "12345678-9abc";
  job.spec.ranks = 4;
  job.spec.scheduling.gang = gang;
  spec["containers"] = json::parse(R"([{"name": "app", "image": "i", "command": ["c"]}])");
  job.spec.pod_template = {{"metadata", metadata}, {"spec", std::move(spec)}};
  return job;
}
json pod_of(const crds::BspJob& job, bool target, bool scheduled = true) {
  return make_pod(job, {.rank = 1, .target = target, .pod_group = "job-12345678"}, {}, {.scheduled = scheduled});
}
json group_of_first_start(const crds::BspJob& job) {
  return make_pod_group(job, pod_group_name(job, 0, job.spec.ranks), job.spec.ranks);
}

TEST(PodGroup, IsOwnedByTheJobAndHoldsAllRanks) {
  const json of_kubernetes = group_of_first_start(job_of(Gang::kPodGroup));
  EXPECT_EQ(of_kubernetes["apiVersion"], "scheduling.k8s.io/v1beta1");
  EXPECT_THAT(
      pod_group_versions(of_kubernetes),
      testing::ElementsAre("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha2"));
  EXPECT_EQ(of_kubernetes["kind"], "PodGroup");
  EXPECT_EQ(of_kubernetes["metadata"], metadata_of_object(job_of(Gang::kPodGroup), "job-12345678"));
  EXPECT_EQ(of_kubernetes["spec"], json::parse(R"({"schedulingPolicy": {"gang": {"minCount": 4}}})"));
  const json of_plugins = group_of_first_start(job_of(Gang::kSchedulerPlugins));
  EXPECT_EQ(of_plugins["apiVersion"], "scheduling.x-k8s.io/v1alpha1");
  EXPECT_THAT(pod_group_versions(of_plugins), testing::ElementsAre("scheduling.x-k8s.io/v1alpha1"));
  EXPECT_EQ(of_plugins["spec"], json::parse(R"({"minMember": 4})"));
  const json of_volcano = group_of_first_start(job_of(Gang::kVolcano));
  EXPECT_EQ(of_volcano["apiVersion"], "scheduling.volcano.sh/v1beta1");
  EXPECT_EQ(of_volcano["spec"], json::parse(R"({"minMember": 4})"));
  EXPECT_EQ(of_volcano["metadata"]["ownerReferences"][0]["uid"], "12345678-9abc");
  const json queued = group_of_first_start(
      job_of(Gang::kVolcano, json::parse(R"({"annotations": {"scheduling.volcano.sh/queue-name": "lab"}})"),
             {{"priorityClassName", "high"}}));
  EXPECT_EQ(queued["spec"], json::parse(R"({"minMember": 4, "queue": "lab", "priorityClassName": "high"})"));
  const json preferred = group_of_first_start(job_of(Gang::kPodGroup, json::object(), {{"priorityClassName", "high"}}));
  EXPECT_EQ(preferred["spec"],
            json::parse(R"({"schedulingPolicy": {"gang": {"minCount": 4}}, "priorityClassName": "high"})"));
  EXPECT_TRUE(group_of_first_start(job_of(Gang::kReserve)).is_null());
}

TEST(PodGroup, HasANameForEachStartThatFitsIntoALabel) {
  crds::BspJob job = job_of(Gang::kPodGroup);
  EXPECT_EQ(pod_group_name(job, 0, 4), "job-12345678");
  EXPECT_EQ(pod_group_name(job, 7, 4), "job-12345678-7");
  job.metadata.name = std::string(52, 'j');
  for (const std::uint32_t generation : {0u, 1u, 99u, 4'294'967'295u}) {
    const std::string name = pod_group_name(job, generation, 4);
    EXPECT_LE(name.size(), 63u) << name;
    EXPECT_THAT(name, testing::EndsWith(generation ? std::format("-12345678-{}", generation) : "-12345678"));
  }
}

TEST(PodGroup, OfKubernetesHasTheRanksAndNoTarget) {
  const json own = json::parse(R"({"schedulingGroup": {"podGroupName": "mine"}})");
  for (const json& spec : {json::object(), own}) {
    const crds::BspJob job = job_of(Gang::kPodGroup, json::object(), spec);
    EXPECT_EQ(pod_of(job, false)["spec"]["schedulingGroup"], json::parse(R"({"podGroupName": "job-12345678"})"));
    EXPECT_FALSE(pod_of(job, true)["spec"].contains("schedulingGroup"));
    EXPECT_FALSE(pod_of(job, false)["spec"].contains("schedulerName"));
  }
  for (const bool target : {true, false})
    EXPECT_EQ(pod_of(job_of(Gang::kReserve, json::object(), own), target)["spec"]["schedulingGroup"],
              own["schedulingGroup"])
        << "the user's own";
}

TEST(PodGroup, OfSchedulerPluginsHasTheRanksAndNoTarget) {
  const std::string label = "scheduling.x-k8s.io/pod-group";
  for (const json& metadata : {json::object(), json({{"labels", {{label, "mine"}, {"a", "b"}}}})}) {
    const crds::BspJob job = job_of(Gang::kSchedulerPlugins, metadata);
    EXPECT_EQ(pod_of(job, false)["metadata"]["labels"][label], "job-12345678");
    EXPECT_FALSE(pod_of(job, true)["metadata"]["labels"].contains(label));
    EXPECT_EQ(pod_of(job, true)["metadata"]["labels"]["migbsp.io/rank"], "1");
    EXPECT_FALSE(pod_of(job, false)["spec"].contains("schedulerName")) << "the template's business";
  }
}

TEST(PodGroup, OfVolcanoHasTargetsToo) {
  for (const bool target : {true, false}) {
    const json pod = pod_of(job_of(Gang::kVolcano), target);
    EXPECT_EQ(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "job-12345678");
    EXPECT_EQ(pod["spec"]["schedulerName"], "volcano");
    const json named = pod_of(job_of(Gang::kVolcano, json::object(), {{"schedulerName", "volcano-2"}}), target);
    EXPECT_EQ(named["spec"]["schedulerName"], "volcano-2");
  }
}

TEST(PodGroup, MeansNothingWithoutAScheduler) {
  for (const Gang gang : {Gang::kPodGroup, Gang::kSchedulerPlugins, Gang::kVolcano})
    EXPECT_EQ(pod_of(job_of(gang), false, false), pod_of(job_of(Gang::kReserve), false, false));
}

TEST(PodGroup, ThatTheTemplateNamesIsReplacedWithAWord) {
  World w({.ranks = 2});
  w.capacity_may_come = true;
  w.job.spec.scheduling.gang = Gang::kVolcano;
  w.job.spec.pod_template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = "mine";
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  const crds::Condition* c = crds::find_condition(w.job.status.conditions, kTemplateOverridden);
  ASSERT_TRUE(c);
  EXPECT_THAT(c->message, StartsWith("spec.template.metadata.annotations[scheduling.k8s.io/group-name] is left out"));
  EXPECT_EQ(own_pod_group(job_of(Gang::kPodGroup, {}, json::parse(R"({"schedulingGroup": {}})")).spec),
            "spec.template.spec.schedulingGroup");
  EXPECT_EQ(own_pod_group(job_of(Gang::kSchedulerPlugins, json::parse(R"({"labels": {"a": "b"}})")).spec), "");
}

}  // namespace
}  // namespace bsp::reconcile::sim
