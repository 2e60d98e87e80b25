#include "operator/reconcile/kernel/start/kueue.h"

#include <algorithm>
#include <format>
#include <map>
#include <regex>
#include <set>

#include "base/json/fields.h"
#include "crds/names.h"
#include "crds/seat.h"
#include "operator/decide/model/mapping.h"
#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/kernel/start/placement.h"
#include "operator/reconcile/kernel/start/start_platform.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

const json& condition(const json& status, std::string_view type) {
  static const json none;
  const json& conditions = part_at(status, "conditions");
  if (conditions.is_array())
    for (const json& c : conditions)
      if (text_at(c, "type") == type) return c;
  return none;
}

bool is_true(const json& status, std::string_view type) { return text_at(condition(status, type), "status") == "True"; }

// Leaves one alone that says the same already: its time is that of its last change.
void turn(json& status, const Observed& o, const char* type, bool on, const std::string& reason,
          const std::string& message) {
  const char* const value = on ? "True" : "False";
  if (text_at(condition(status, type), "status") == value) return;
  if (!part_at(status, "conditions").is_array()) status["conditions"] = json::array();
  auto& conditions = status["conditions"].get_ref<json::array_t&>();
  std::erase_if(conditions, [&](const json& c) { return text_at(c, "type") == type; });
  const json& metadata = part_at(o.queued->workload, "metadata");
  conditions.push_back({{"type", type},
                        {"status", value},
                        {"reason", reason},
                        {"message", message},
                        {"lastTransitionTime", to_rfc3339(o.now)},
                        {"observedGeneration", count_at<std::int64_t>(metadata, "generation")}});
}

// Kueue takes no more in a Workload.
constexpr std::size_t kMostPodSets = 8;

// By Set, and by the ranks in each: pods.
using PodsBySet = std::map<std::pair<std::string, std::uint32_t>, std::uint32_t>;

void add_pods(const std::string& set, std::uint32_t ranks, std::uint32_t most, PodsBySet& pods) {
  if (ranks >= most) pods[{set, most}] += ranks / most;
  if (ranks % most != 0) ++pods[{set, ranks % most}];
}

// That the initial mapping starts if the nodes are free, as they are for whom Kueue admits.
PodsBySet pods_by_set(const Observed& o) {
  const auto sets = observe::set_names(o.job.spec.sets, o.nodes);
  const auto platform = platform_at_start(o, nodes_without_jobs(o));
  const bool is_auto = crds::fills_nodes(o.job.spec);
  const std::uint32_t most = most_seats(o.job.spec);
  PodsBySet pods;
  if (const auto mapping = decide::initial_mapping(o.job.spec.initial_mapping, o.job.spec.ranks, platform)) {
    std::map<std::pair<std::string, std::string>, std::uint32_t> ranks;  // by Set and node
    for (const ProcessorId id : *mapping) {
      const decide::Processor& processor = platform.processor(id);
      ++ranks[{platform.sets[processor.set.value].name, processor.name}];
    }
    for (const auto& [at, there] : ranks) add_pods(at.first, there, most, pods);
  } else if (!sets.empty()) {  // an autoscaler may add the nodes
    const auto all = static_cast<std::uint32_t>(sets.size());
    for (std::uint32_t i = 0; i < all; ++i)
      if (const std::uint32_t n = o.job.spec.ranks / all + (i < o.job.spec.ranks % all ? 1 : 0))
        add_pods(sets[i], n, is_auto ? 1 : most, pods);
  }
  if (pods.size() <= kMostPodSets) return pods;
  PodsBySet alone;  // then each rank counts with a sidecar of its own
  for (const auto& [shape, count] : pods) alone[{shape.first, 1}] += shape.second * count;
  return alone;
}

// What kube-scheduler counts, and what says which nodes a rank may use.
json pod_template(const crds::BspJob& job, const std::string& set, std::uint32_t seats) {
  json made = {{"metadata", json::object()}, {"spec", part_at(job.spec.pod_template, "spec")}};
  json& spec = made["spec"];
  require_platform(spec);
  spec["nodeSelector"][job.spec.sets.label] = set;
  spec["restartPolicy"] = "Never";
  if (const json* app = crds::app_container(job.spec); app && seats > 1)
    for (std::uint32_t local = 1; local < seats; ++local) {
      json beside = *app;
      beside["name"] = container_of(local);
      spec["containers"].push_back(std::move(beside));
    }
  if (!part_at(spec, "initContainers").is_array()) spec["initContainers"] = json::array();
  json sidecar = {{"name", names::kSidecarContainer}, {"image", "sidecar"}, {"restartPolicy", "Always"}};
  if (job.spec.sidecar.resources.is_object()) sidecar["resources"] = job.spec.sidecar.resources;
  spec["initContainers"].push_back(std::move(sidecar));
  return made;
}

json fields_of_spec(const Observed& o) {
  return {{"queueName", o.queued->queue},
          {"active", !o.job.spec.run_policy.suspend},
          {"priority", std::clamp<std::int64_t>(o.job.spec.run_policy.priority, -1'000'000'000, 1'000'000'000)}};
}

json new_workload(const Observed& o) {
  json pod_sets = json::array();
  static const std::regex good("[a-z0-9]([-a-z0-9]*[a-z0-9])?");
  std::set<std::string> names;
  for (const auto& [shape, pods] : pods_by_set(o)) {
    const auto& [set, seats] = shape;
    std::string name = std::regex_match(set, good) ? set : std::format("set-{}", pod_sets.size());
    if (!names.insert(name).second) name = std::format("set-{}", pod_sets.size());
    pod_sets.push_back({{"name", name}, {"count", pods}, {"template", pod_template(o.job, set, seats)}});
  }
  if (pod_sets.empty()) return {};
  json spec = fields_of_spec(o);
  spec["podSets"] = std::move(pod_sets);
  return {{"apiVersion", kWorkloadApi},
          {"kind", "Workload"},
          {"metadata", metadata_of_object(o.job, workload_name({o.job.metadata.name, o.job.metadata.uid}))},
          {"spec", std::move(spec)}};
}

// What it should become.
json next_status(const Observed& o, bool pods_left) {
  json status = part_at(o.queued->workload, "status");
  if (!status.is_object()) status = json::object();
  const crds::JobPhase phase = o.job.status.phase;
  if (crds::is_finished(phase)) {
    const bool well = phase == crds::JobPhase::kSucceeded;
    turn(status, o, "Finished", true, well ? "Succeeded" : "Failed", o.job.status.message);
    return status;
  }
  const bool runs = is_running(phase);
  if (is_true(status, "Admitted") || !condition(status, "PodsReady").is_null())
    turn(status, o, "PodsReady", runs, runs ? "Started" : "WaitForStart",
         runs ? "every rank runs" : "not every rank runs");
  const json evicted = condition(status, "Evicted");
  if (text_at(evicted, "status") != "True" || pods_left || phase != crds::JobPhase::kSuspended) return status;
  const std::string reason = text_at(evicted, "reason"), message = text_at(evicted, "message");
  if (is_true(status, "QuotaReserved"))  // of others, Kueue itself says when they are queued again
    turn(status, o, "Requeued", reason == "Preempted" || reason == "NodeFailures", reason, message);
  turn(status, o, "QuotaReserved", false, "Pending", message);
  if (!condition(status, "Admitted").is_null())
    turn(status, o, "Admitted", false, "NoReservation", "The workload has no reservation");
  status.erase("admission");
  return status;
}

// As a merge patch that is refused if the Workload has changed since; null if nothing changes.
json patch_of_status(const json& workload, const json& next) {
  const json& before = part_at(workload, "status");
  json patch = json::object();
  if (part_at(before, "conditions") != part_at(next, "conditions")) patch["conditions"] = part_at(next, "conditions");
  if (!part_at(before, "admission").is_null() && !next.contains("admission")) patch["admission"] = nullptr;
  if (patch.empty()) return {};
  const json& metadata = part_at(workload, "metadata");
  return {{"metadata", {{"resourceVersion", part_at(metadata, "resourceVersion")}, {"uid", part_at(metadata, "uid")}}},
          {"status", std::move(patch)}};
}

}  // namespace

std::string workload_name(const JobId& job) { return "bspjob-" + name_of_job(job); }

bool admits(const Queued& queued) {
  const json& status = part_at(queued.workload, "status");
  return is_true(status, "Admitted") && !is_true(status, "Evicted") &&
         text_at(part_at(queued.workload, "metadata"), "deletionTimestamp").empty();
}

std::string why_held(const Queued& queued) {
  const json& status = part_at(queued.workload, "status");
  std::string text = "waits in LocalQueue " + queued.queue;
  const json& reserved = condition(status, "QuotaReserved");
  if (is_true(status, "Evicted") && text_at(reserved, "status") != "False")
    return std::format("Kueue evicted the job: {}", text_at(condition(status, "Evicted"), "message"));
  const json& why = is_true(status, "QuotaReserved") ? condition(status, "Admitted") : reserved;
  if (const std::string message = text_at(why, "message"); !message.empty() && text_at(why, "status") == "False")
    text += ": " + message;
  return text;
}

WorkloadWrites workload_writes(const Observed& o, bool pods_left) {
  const json& workload = o.queued->workload;
  if (workload.is_null())
    return {.create = crds::is_finished(o.job.status.phase) ? json() : new_workload(o), .spec = {}, .status = {}};
  if (is_true(part_at(workload, "status"), "Finished")) return {};
  WorkloadWrites writes{.create = {}, .spec = {}, .status = patch_of_status(workload, next_status(o, pods_left))};
  json changed = json::object();
  const bool reserved = is_true(part_at(workload, "status"), "QuotaReserved");
  const json wanted = fields_of_spec(o);
  for (const auto& [field, value] : wanted.items())
    if (part_at(part_at(workload, "spec"), field) != value && !(reserved && field == "queueName"))
      changed[field] = value;
  if (!changed.empty()) writes.spec = std::move(changed);
  return writes;
}

}  // namespace bsp::reconcile
