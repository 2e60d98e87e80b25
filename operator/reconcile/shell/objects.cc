#include "operator/reconcile/shell/objects.h"

#include <string_view>
#include <utility>

#include "crds/stored_status.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/kernel/checkpoints/reclaim.h"
#include "operator/reconcile/kernel/checkpoints/skew.h"
#include "operator/reconcile/kernel/start/gang.h"

namespace bsp::reconcile {
namespace {

using kube::Object;

constexpr std::string_view kOurs = names::kLabelJob.substr(0, names::kLabelJob.find('/') + 1);
constexpr const char* kApplied = "kubectl.kubernetes.io/last-applied-configuration";

// Keeps only the members named.
void keep(Object& object, std::initializer_list<const char*> names) {
  if (!object.is_object()) return;
  Object kept = Object::object();
  for (const char* name : names)
    if (const auto it = object.find(name); it != object.end()) kept[name] = std::move(*it);
  object = std::move(kept);
}

void keep_in(Object& object, const char* part, std::initializer_list<const char*> names) {
  if (object.is_object() && object.contains(part)) keep(object[part], names);
}

void keep_in_each(Object& object, const char* list, std::initializer_list<const char*> names) {
  if (object.is_object() && object.contains(list) && object[list].is_array())
    for (Object& item : object[list]) keep(item, names);
}

// Only our own labels: the user's template may have many.
void keep_our_labels(Object& metadata) {
  const auto labels = metadata.find("labels");
  if (labels == metadata.end() || !labels->is_object()) return;
  Object ours = Object::object();
  for (auto& [label, value] : labels->items())
    if (label.starts_with(kOurs)) ours[label] = std::move(value);
  *labels = std::move(ours);
}

// Only the owner that is a job, and only the fields that owner_of() reads.
void keep_our_owner(Object& metadata) {
  const auto owners = metadata.find("ownerReferences");
  if (owners == metadata.end()) return;
  Object ours = Object::array();
  if (owners->is_array())
    for (const Object& owner : *owners)
      if (is_our_owner(owner)) ours.push_back(owner);
  if (ours.empty()) return void(metadata.erase(owners));
  for (Object& owner : ours) keep(owner, {"apiVersion", "kind", "name", "uid", "controller"});
  *owners = std::move(ours);
}

// {"running": {}} says that a container runs; the start time isn't needed. Of an earlier termination, only the reason.
void trim_container_status(Object& container) {
  const kube::Object last = part_at(part_at(container, "lastState"), "terminated");
  const std::string before = text_at(last, "reason");
  keep(container, {"name", "state", "imageID", "resources"});
  if (!container.is_object()) return;
  const std::string name = text_at(container, "name");
  if (local_of(name)) {
    keep_in(container, "resources", {"limits"});
    if (container.contains("resources")) keep_in(container["resources"], "limits", {"cpu"});
  } else {
    container.erase("resources");
  }
  if (name != names::kAppContainer && name != names::kSidecarContainer)
    container.erase("imageID");  // these are compared
  if (!before.empty()) container["lastState"] = {{"terminated", {{"reason", before}}}};
  if (!before.empty() && name == kReclaimContainer)  // what the storage said at its last try
    container["lastState"]["terminated"]["message"] = text_at(last, "message");
  if (!part_at(container, "state").is_object()) return;
  Object& state = container["state"];
  keep_in(state, "running", {});
  keep_in(state, "waiting", {"reason", "message"});
  keep_in(state, "terminated", {"exitCode", "reason", "message"});
}

// What they request; of the ranks', how that can change; and of the sidecar, the runtime image.
void trim_containers(Object& spec, const char* list) {
  const auto containers = spec.find(list);
  if (containers == spec.end() || !containers->is_array()) return;
  for (Object& container : *containers)
    if (text_at(container, "name") == names::kSidecarContainer)
      keep(container, {"name", "image", "resources", "restartPolicy"});
    else if (local_of(text_at(container, "name")))
      keep(container, {"name", "resources", "resizePolicy", "restartPolicy"});
    else
      keep(container, {"resources", "restartPolicy"});
}

// Only the conditions that say why the scheduler found no node, who removes the pod, and how a resize goes.
void keep_causes(Object& status) {
  const auto conditions = status.find("conditions");
  if (conditions == status.end() || !conditions->is_array()) return;
  std::erase_if(conditions->get_ref<Object::array_t&>(), [](const Object& condition) {
    const std::string type = text_at(condition, "type"), holds = text_at(condition, "status");
    const bool is_kept = type == "DisruptionTarget" || type == "PodResizePending" || type == "PodResizeInProgress";
    return !(type == "PodScheduled" && holds == "False") && !(is_kept && holds == "True");
  });
  keep_in_each(status, "conditions", {"type", "status", "reason", "message"});
  if (conditions->empty()) status.erase(conditions);
}

void trim_pod(Object& pod) {
  keep_program(pod);
  keep(pod, {"apiVersion", "kind", "metadata", "spec", "status", kOfProgram});
  keep_in(pod, "metadata",
          {"name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences",
           "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"});
  keep_in(pod, "spec",
          {"nodeName", "containers", "initContainers", "overhead", "resources", "terminationGracePeriodSeconds"});
  keep_in(pod, "status",
          {"phase", "podIP", "reason", "message", "conditions", "containerStatuses", "initContainerStatuses"});
  if (part_at(pod, "metadata").is_object()) {
    keep_our_labels(pod["metadata"]);
    keep_our_owner(pod["metadata"]);
    keep_in(pod["metadata"], "annotations",
            {names::kAnnotationMoveTo.data(), names::kAnnotationRanks.data(), kGroupAnnotation});
    if (part_at(pod["metadata"], "annotations").empty()) pod["metadata"].erase("annotations");
  }
  if (part_at(pod, "spec").is_object())
    for (const char* list : {"containers", "initContainers"}) trim_containers(pod["spec"], list);
  if (!part_at(pod, "status").is_object()) return;
  Object& status = pod["status"];
  for (const char* list : {"containerStatuses", "initContainerStatuses"})
    if (const auto containers = status.find(list); containers != status.end() && containers->is_array())
      for (Object& container : *containers) trim_container_status(container);
  keep_causes(status);
}

// kubectl apply stores a copy of the manifest, as long as the object itself, that only kubectl reads.
void trim_job(Object& job) {
  if (!part_at(job, "metadata").is_object()) return;
  const auto annotations = job["metadata"].find("annotations");
  if (annotations != job["metadata"].end() && annotations->is_object()) annotations->erase(kApplied);
}

void trim_node(Object& node) {
  keep(node, {"apiVersion", "kind", "metadata", "spec", "status"});
  keep_in(node, "metadata", {"name", "uid", "resourceVersion", "labels", "annotations", "deletionTimestamp"});
  keep_in(node, "spec", {"unschedulable", "taints"});
  keep_in(node, "status", {"allocatable", "conditions"});
  if (part_at(node, "status").is_object()) keep_in_each(node["status"], "conditions", {"type", "status"});
}

// Its pod templates are what the operator has written itself.
void trim_workload(Object& workload) {
  keep(workload, {"apiVersion", "kind", "metadata", "spec", "status"});
  keep_in(workload, "metadata",
          {"name", "namespace", "uid", "resourceVersion", "generation", "ownerReferences", "deletionTimestamp"});
  if (part_at(workload, "metadata").is_object()) keep_our_owner(workload["metadata"]);
  keep_in(workload, "spec", {"queueName", "active", "priority"});
  keep_in(workload, "status", {"conditions", "admission"});
  if (part_at(workload, "status").is_object()) keep_in(workload["status"], "admission", {"clusterQueue"});
}

kube::Indexer by_job(const kube::Kind& kind) {
  return [kind](const Object& object) -> std::vector<std::string> {
    std::string key = job_key_of(kind, object);
    if (key.empty()) return {};
    return {std::move(key)};
  };
}

double real(const Object& object, const char* name) {
  const Object& value = part_at(object, name);
  return value.is_number() ? value.get<double>() : 0;
}

}  // namespace

void trim_watched(const kube::Kind& kind, Object& object) {
  if (kind == kBspJob) trim_job(object);
  if (kind == kPod) trim_pod(object);
  if (kind == kNode) trim_node(object);
  if (kind == kWorkload) trim_workload(object);
}

kube::CacheOptions watched_objects(const std::string& name_space, bool kueue) {
  kube::CacheOptions options{.name_space = name_space,
                             .kinds = {{.kind = kBspJob},
                                       {.kind = kRankMigration, .indexes = {{kByJob, by_job(kRankMigration)}}},
                                       {.kind = kPod, .indexes = {{kByJob, by_job(kPod)}}},
                                       {.kind = kNode}}};
  if (kueue) options.kinds.push_back({.kind = kWorkload});
  for (kube::CachedKind& cached : options.kinds)
    cached.trim = [kind = cached.kind](Object& object) { trim_watched(kind, object); };
  return options;
}

JobMetrics job_metrics(const Object& job) {
  const Object& spec = part_at(job, "spec");
  const Object status = crds::whole_status(part_at(job, "status")).value_or(Object::object());
  JobMetrics metrics;
  metrics.name_space = kube::metadata_text(job, "namespace");
  metrics.name = kube::metadata_text(job, "name");
  metrics.phase = text_at(status, "phase");
  if (metrics.phase.empty()) metrics.phase = "Pending";
  metrics.ranks = count_at<std::int64_t>(spec, "ranks");
  metrics.superstep = count_at<std::int64_t>(status, "superstep");
  metrics.moves = count_at<std::int64_t>(part_at(status, "migrations"), "succeeded");
  metrics.restarts = count_at<std::int64_t>(status, "attempt");
  metrics.gain_seconds = real(status, "realisedGainSeconds");
  return metrics;
}

}  // namespace bsp::reconcile
