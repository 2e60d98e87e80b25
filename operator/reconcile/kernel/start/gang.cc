#include "operator/reconcile/kernel/start/gang.h"

#include <algorithm>
#include <array>
#include <format>
#include <set>
#include <string_view>

#include "base/json/fields.h"
#include "operator/reconcile/kernel/job_kernel.h"
#include "operator/reconcile/kernel/json_child.h"
#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

using crds::Gang;
using nlohmann::json;

namespace {

constexpr const char* kGroupLabel = "scheduling.x-k8s.io/pod-group";  // of scheduler-plugins
constexpr std::array kVersions{"scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3",
                               "scheduling.k8s.io/v1alpha2"};  // of kube-scheduler's own PodGroup
constexpr const char* kQueueAnnotation =
    "scheduling.volcano.sh/queue-name";  // Volcano's queue, of a pod without a group

const json& template_spec(const crds::BspJobSpec& spec) { return part_at(spec.pod_template, "spec"); }
const json& template_metadata(const crds::BspJobSpec& spec) { return part_at(spec.pod_template, "metadata"); }

json group_of(const crds::BspJob& job, const std::string& name, const char* api_version, json spec) {
  return {{"apiVersion", api_version},
          {"kind", "PodGroup"},
          {"metadata", metadata_of_object(job, name)},
          {"spec", std::move(spec)}};
}

// The priority of its pods, where schedulers go by the group's.
void put_priority(json& made, const crds::BspJobSpec& spec) {
  if (const std::string priority = text_at(template_spec(spec), "priorityClassName"); !priority.empty())
    made["priorityClassName"] = priority;
}

// Kubernetes 1.37 queues and preempts a group by its own priority and never by its pods'. 1.36 drops the field, unless its gate
// WorkloadAwarePreemption is on, and goes by the pods'.
json kubernetes_spec(const crds::BspJobSpec& spec, std::uint32_t pods) {
  json made = {{"schedulingPolicy", {{"gang", {{"minCount", pods}}}}}};
  put_priority(made, spec);
  return made;
}

// What a group of its own would have been given by the template's pods.
json volcano_spec(const crds::BspJobSpec& spec, std::uint32_t pods) {
  json made = {{"minMember", pods}};
  if (const std::string queue = text_at(part_at(template_metadata(spec), "annotations"), kQueueAnnotation);
      !queue.empty())
    made["queue"] = queue;
  put_priority(made, spec);
  return made;
}

// Sets `name` in an object of the pod's metadata, or removes it.
void put_or_erase(json& pod, const char* object, const char* name, const std::string& value) {
  json& metadata = child(pod, "metadata", json::value_t::object);
  if (!value.empty())
    child(metadata, object, json::value_t::object)[name] = value;
  else if (part_at(metadata, object).is_object())
    metadata[object].erase(name);
}

// What the cluster has to have.
std::string_view needs(Gang gang) {
  switch (gang) {
    case Gang::kReserve:
      return "";
    case Gang::kPodGroup:
      return "turn on Kubernetes 1.37's feature gate GenericWorkload and its API scheduling.k8s.io/v1beta1 "
             "(of 1.36: GenericWorkload, GangScheduling and v1alpha2)";
    case Gang::kSchedulerPlugins:
      return "install scheduler-plugins with its PodGroup (scheduling.x-k8s.io/v1alpha1)";
    case Gang::kVolcano:
      return "install Volcano with its PodGroup (scheduling.volcano.sh/v1beta1)";
  }
  return "";
}

}  // namespace

bool starts_by_scheduler(const Observed& o) {
  return o.job.spec.scheduling.gang != Gang::kReserve && o.capacity_may_come;
}

bool waits_in_gang(const Observed& o) {
  const crds::BspJobStatus& status = o.job.status;
  return starts_by_scheduler(o) && status.phase == crds::JobPhase::kStarting &&
         std::ranges::all_of(status.ranks, [&](const crds::RankPlace& place) {
           const PodFacts* pod = o.pod(place.seat());
           return pod && pod->node.empty();
         });
}

bool targets_join_group(const crds::BspJob& job) { return job.spec.scheduling.gang == Gang::kVolcano; }

std::uint32_t pods_of(const crds::RankPlaces& ranks) {
  std::set<std::string_view> pods;
  for (const crds::RankPlace& place : ranks) pods.insert(place.pod);
  return static_cast<std::uint32_t>(pods.size());
}

std::string pod_group_name(const crds::BspJob& job, std::uint32_t generation, std::uint32_t pods) {
  constexpr std::size_t kLongest = 63;  // of a label's value
  std::string start = generation == 0 ? "" : std::format("-{}", generation);
  if (crds::most_seats(job) > 1) start += std::format("-p{}", pods);
  const JobId id{job.metadata.name, job.metadata.uid};
  const std::size_t whole = name_of_job(id).size() + start.size();
  const std::size_t over = whole > kLongest ? whole - kLongest : 0;
  return name_of_job({id.name.substr(0, id.name.size() - std::min(over, id.name.size())), id.uid}) + start;
}

std::string joined_group(const json& pod) {
  return text_at(part_at(part_at(pod, "metadata"), "annotations"), kGroupAnnotation);
}

json make_pod_group(const crds::BspJob& job, const std::string& name, std::uint32_t pods) {
  switch (job.spec.scheduling.gang) {
    case Gang::kReserve:
      return {};
    case Gang::kPodGroup:
      return group_of(job, name, kVersions.front(), kubernetes_spec(job.spec, pods));
    case Gang::kSchedulerPlugins:
      return group_of(job, name, "scheduling.x-k8s.io/v1alpha1", {{"minMember", pods}});
    case Gang::kVolcano:
      return group_of(job, name, "scheduling.volcano.sh/v1beta1", volcano_spec(job.spec, pods));
  }
  return {};
}

std::vector<std::string> pod_group_versions(const json& group) {
  const std::string own = text_at(group, "apiVersion");
  if (own == kVersions.front()) return {kVersions.begin(), kVersions.end()};
  return {own};
}

void join_pod_group(json& pod, const crds::BspJob& job, const PodRequest& request) {
  const std::string group = request.target && !targets_join_group(job) ? "" : request.pod_group;
  json& spec = child(pod, "spec", json::value_t::object);
  switch (job.spec.scheduling.gang) {
    case Gang::kReserve:
      return;
    case Gang::kPodGroup:
      spec.erase("schedulingGroup");
      if (!group.empty()) spec["schedulingGroup"] = {{"podGroupName", group}};
      return;
    case Gang::kSchedulerPlugins:
      return put_or_erase(pod, "labels", kGroupLabel, group);
    case Gang::kVolcano:
      put_or_erase(pod, "annotations", kGroupAnnotation, group);
      if (text_at(spec, "schedulerName").empty()) spec["schedulerName"] = "volcano";
  }
}

std::string own_pod_group(const crds::BspJobSpec& spec) {
  const auto in_metadata = [&](const char* object, const char* name) {
    return text_at(part_at(template_metadata(spec), object), name).empty()
               ? std::string()
               : std::format("spec.template.metadata.{}[{}]", object, name);
  };
  switch (spec.scheduling.gang) {
    case Gang::kReserve:
      return "";
    case Gang::kPodGroup:
      return part_at(template_spec(spec), "schedulingGroup").is_null() ? "" : "spec.template.spec.schedulingGroup";
    case Gang::kSchedulerPlugins:
      return in_metadata("labels", kGroupLabel);
    case Gang::kVolcano:
      return in_metadata("annotations", kGroupAnnotation);
  }
  return "";
}

bool is_unserved(const Error& error) {
  return error.code == ErrorCode::kUnavailable && error.message.contains("API server doesn't serve");
}

GroupRefused why_no_group(const crds::BspJob& job, const Error& error) {
  const Gang gang = job.spec.scheduling.gang;
  const bool unserved = is_unserved(error);
  // Admission answers "forbidden" too, as to a PriorityClass that doesn't exist, and no right helps against that.
  const bool forbidden = error.code == ErrorCode::kRefused && error.message.contains("cannot create");
  const std::string remedy =
      unserved    ? std::format("; {}, or create the job again with Reserve", needs(gang))
      : forbidden ? "; set gangScheduling.enabled of the operator's chart, or create the job again with Reserve"
                  : "";
  return {unserved    ? "NotServed"
          : forbidden ? "Forbidden"
                      : "Refused",
          std::format("spec.scheduling.gang is {}, and its PodGroup can't be created: {}{}", crds::to_string(gang),
                      error.message, remedy)};
}

bool warn_of_gang(const Observed& o, crds::BspJobStatus& status) {
  const Gang gang = o.job.spec.scheduling.gang;
  const bool alone = gang != Gang::kReserve && !starts_by_scheduler(o);
  const bool unnamed = gang == Gang::kSchedulerPlugins && text_at(template_spec(o.job.spec), "schedulerName").empty();
  const bool is = alone || unnamed;
  if (is == is_on(status, kGangNotEnsured)) return false;
  turn_condition(
      o, status, kGangNotEnsured, is, alone ? "NoScheduler" : "SchedulerNotNamed",
      alone
          ? std::format("spec.scheduling.gang is {}, and one machine has no scheduler: the ranks start as with Reserve",
                        crds::to_string(gang))
          : "spec.scheduling.gang is SchedulerPlugins, and spec.template.spec.schedulerName names no scheduler: unless "
            "the cluster's default scheduler has the plugin Coscheduling, it schedules each rank alone");
  return is;
}

// --- Of a job's start ------------------------------------------------------------------------------------------------

// Before there is any pod, since some schedulers schedule a pod alone whose group they don't find.
bool JobKernel::has_pod_group(std::uint32_t generation, std::uint32_t pods) {
  const std::string name = pod_group_name(o.job, generation, pods);
  work.pod_group = make_pod_group(o.job, name, pods);
  if (o.pod_group.name != name) return false;
  if (o.pod_group.made) {
    if (is_on(status(), kPodGroupRefused))
      turn_condition(o, status(), kPodGroupRefused, false, "Created", "the PodGroup is there");
    return true;
  }
  if (!o.pod_group.refused) return false;
  auto [reason, message] = why_no_group(o.job, *o.pod_group.refused);
  if (status().reason == kPodGroupRefused && status().message == message) return false;
  if (status().reason != kPodGroupRefused) notices.events.push_back({"Warning", kPodGroupRefused, message});
  turn_condition(o, status(), kPodGroupRefused, true, std::move(reason), message);
  status().reason = kPodGroupRefused;
  status().message = std::move(message);
  stores = true;
  return false;
}

// Somebody may delete it while pods wait in it.
void JobKernel::keep_pod_group() {
  if (!starts_by_scheduler(o)) return;
  const auto waits = [&](const crds::RankPlace& place) {
    const PodFacts* pod = o.pod(place.seat());
    return !pod || pod->node.empty();
  };
  if (std::ranges::any_of(status().ranks, waits))
    work.pod_group = make_pod_group(o.job, group, pods_of(o.job.status.ranks));
}

std::string JobKernel::group_of_start() const {
  if (!starts_by_scheduler(o)) return "";
  const crds::RankPlaces& ranks = o.job.status.ranks;
  return pod_group_name(o.job, ranks.front().generation - 1, pods_of(ranks));
}

}  // namespace bsp::reconcile
