// What the operator makes for each scheduler that starts a job all or nothing; decode.sh reads it by the schedulers' types.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/reconcile/kernel/pods/pods.h"
#include "operator/reconcile/kernel/start/gang.h"
#include "tests/golden/golden.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

// Without the containers, which are not the schedulers' business.
json pod_of(const crds::BspJob& job, const std::string& group, bool target) {
  json pod = make_pod(job, {.rank = 1, .generation = 3, .target = target, .pod_group = group}, {}, {.scheduled = true});
  json spec;
  for (const char* field : {"schedulerName", "schedulingGroup", "priorityClassName"})
    if (pod["spec"].contains(field)) spec[field] = pod["spec"][field];
  pod["spec"] = std::move(spec);
  return pod;
}

TEST(GoldenPodGroup, OfEachScheduler) {
  crds::BspJob job;
  job.metadata.name = "job";
  job.metadata.name_space = "science";
  job.metadata.uid = "12345678-9abc";
  job.spec.ranks = 4;
  json& template_ = job.spec.pod_template;
  template_["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] = "lab";
  template_["spec"] = {{"containers", json::parse(R"([{"name": "app", "image": "i", "command": ["c"]}])")},
                       {"priorityClassName", "high"}};
  json made;
  for (const crds::Gang gang : {crds::Gang::kPodGroup, crds::Gang::kSchedulerPlugins, crds::Gang::kVolcano}) {
    job.spec.scheduling.gang = gang;
    const std::string group = pod_group_name(job, 2, 4);
    made[std::string(crds::to_string(gang))] = {{"podGroup", make_pod_group(job, group, 4)},
                                                {"rank", pod_of(job, group, false)},
                                                {"target", pod_of(job, group, true)}};
  }
  golden::expect_same("pod_groups/made.json", made.dump(2) + "\n");
}

}  // namespace
}  // namespace bsp::reconcile
