#include "operator/reconcile/kernel/observed.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <format>

#include "base/json/fields.h"
#include "crds/names.h"
#include "operator/reconcile/kernel/pods.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

const json* container_status(const json& pod_status, const char* list, std::string_view name) {
  for (const json& status : part_at(pod_status, list))
    if (text_at(status, "name") == name) return &status;
  return nullptr;
}

bool is_of_image(const std::string& reason) {
  return reason.contains("Image") || reason == "RegistryUnavailable" || reason == "SignatureValidationFailed";
}

// The kubelet tries again, whatever the pod's restartPolicy is: a ConfigMap or Secret that isn't there yet, a container
// runtime that starts too many at once ("context deadline exceeded", "name is reserved").
bool is_failed_creation(const std::string& reason) {
  return reason == "CreateContainerConfigError" || reason == "CreateContainerError" || reason == "RunContainerError";
}

// As every container does on its way.
bool is_usual(const std::string& reason) {
  return reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing" || reason == "CrashLoopBackOff";
}

// No waiting cures it. Any other reason that isn't usual may pass, such as a registry that is busy.
bool is_final(const std::string& reason) {
  return reason == "ErrImageNeverPull" || reason == "InvalidImageName" || reason == "ContainerCannotRun" ||
         reason == "StartError";
}

// Of the user's containers too: none of the pod starts before its init containers have ended. Where the program runs,
// its sidecar is being created again, or another container has yet to start; neither ends the rank, nor undoes its end.
void note_waiting(const json& container, PodFacts& facts) {
  if (facts.app_ended) return;
  const json& waiting = part_at(part_at(container, "state"), "waiting");
  const std::string reason = text_at(waiting, "reason"), message = text_at(waiting, "message");
  if (is_final(reason) && !facts.app_running) {
    facts.cannot_start = true;
    facts.reason = reason;
    facts.app_message = message;
  } else if (!is_usual(reason) && facts.start_delay.empty()) {
    facts.start_delay = std::format("container {} waits: {}{}{}", text_at(container, "name"), reason,
                                    message.empty() ? "" : ": ", message);
    facts.delayed_by_image = is_of_image(reason);
  }
}

bool is_killed(int exit_code) { return exit_code == 128 + SIGKILL || exit_code == 128 + SIGTERM; }

// Why the node ended a pod: of one whose program it had not started or not seen to end, and of one whose program it has killed
// with it, as its container's exit code alone doesn't tell.
void note_end(const json& pod, PodFacts& facts) {
  const json& status = part_at(pod, "status");
  facts.reason = text_at(status, "reason");
  facts.app_message = text_at(status, "message");
  for (const json& container : part_at(status, "initContainerStatuses")) {
    const json& end = part_at(part_at(container, "state"), "terminated");
    const int code = whole_number<int>(part_at(end, "exitCode")).value_or(0);
    if (code == 0 || !facts.reason.empty()) continue;
    facts.reason = "InitContainerFailed";
    facts.app_message = std::format("init container {} ended with code {}{}", text_at(container, "name"), code,
                                    text_at(end, "reason") == "OOMKilled" ? " (out of memory)" : "");
  }
  if (facts.reason == "DeadlineExceeded")
    facts.app_message = "spec.template.spec.activeDeadlineSeconds has passed; raise it, or use spec.runPolicy's";
  if (facts.app_message.contains("EmptyDir volume"))
    facts.app_message += facts.app_message.contains("\"bsp-run\"")
                             ? " (spec.checkpoint.sizeLimit)"
                             : " (emptyDir.sizeLimit of the volume in spec.template.spec.volumes)";
  if (facts.reason.empty()) facts.reason = "PodFailed";
  if (facts.app_message.empty()) facts.app_message = "the node ended the pod";
}

// NFS, Lustre and others can't be idmapped, which a pod with a user namespace needs. Container runtimes only name the
// system call.
bool lacks_idmapped_mounts(const json& container) {
  const json& state = part_at(container, "state");
  for (const json* now : {&part_at(state, "waiting"), &part_at(state, "terminated")}) {
    if (text_at(*now, "reason") == "Error") continue;  // the program's own words
    std::string why = text_at(*now, "message");
    std::ranges::transform(why, why.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (why.contains("idmap") || why.contains("mount_setattr")) return true;
  }
  return false;
}

void name_user_namespace(const json& pod_status, PodFacts& facts) {
  const auto lacks = [&](const char* list) {
    return std::ranges::any_of(part_at(pod_status, list), lacks_idmapped_mounts);
  };
  if (!lacks("initContainerStatuses") && !lacks("containerStatuses")) return;
  for (std::string* said : {&facts.app_message, &facts.start_delay})
    if (!said->empty())
      *said +=
          "; a file system such as NFS or Lustre can't be mounted in the pod's user namespace: set hostUsers: true in "
          "spec.template.spec, or for all jobs the chart's jobs.userNamespaces: false";
}

}  // namespace

PodFacts pod_facts(const json& pod) {
  constexpr std::uint64_t kUsualGraceSeconds = 30;
  PodFacts facts;
  const json &metadata = part_at(pod, "metadata"), &labels = part_at(metadata, "labels"),
             &status = part_at(pod, "status");
  facts.uid = text_at(metadata, "uid");
  facts.deleting = !part_at(metadata, "deletionTimestamp").is_null();
  facts.node = text_at(part_at(pod, "spec"), "nodeName");
  // What a deletion says is less than the pod's own, or 0 for one by force, of which the kubelet may never have heard.
  facts.grace_seconds =
      std::max(whole_number<std::uint64_t>(part_at(metadata, "deletionGracePeriodSeconds")).value_or(0),
               whole_number<std::uint64_t>(part_at(part_at(pod, "spec"), "terminationGracePeriodSeconds"))
                   .value_or(kUsualGraceSeconds));
  facts.set = text_at(labels, names::kLabelSet);
  facts.pod_group = joined_group(pod);
  if (const json* sidecar = container_status(part_at(pod, "spec"), "initContainers", names::kSidecarContainer)) {
    const json* started = container_status(status, "initContainerStatuses", names::kSidecarContainer);
    facts.runtime_image = image_by_digest(text_at(*sidecar, "image"), started ? text_at(*started, "imageID") : "");
  }
  facts.move_to = text_at(part_at(metadata, "annotations"), names::kAnnotationMoveTo);
  const PodRequest request = request_of(pod);
  facts.rank = request.rank;
  facts.generation = request.generation;
  facts.attempt = request.attempt;
  facts.created = from_rfc3339(text_at(metadata, "creationTimestamp"));
  if (const std::string ip = text_at(status, "podIP"); !ip.empty())
    facts.address = ip.find(':') == std::string::npos ? std::format("{}:{}", ip, names::kSidecarPort)
                                                      : std::format("[{}]:{}", ip, names::kSidecarPort);
  for (const json& condition : part_at(status, "conditions")) {
    if (text_at(condition, "type") == "PodScheduled" && text_at(condition, "status") == "False")
      facts.unscheduled = text_at(condition, "message");
    if (text_at(condition, "type") == "DisruptionTarget" && text_at(condition, "status") == "True") {
      const std::string message = text_at(condition, "message");
      facts.disruption = text_at(condition, "reason") + (message.empty() ? "" : ", " + message);
    }
  }
  for (const auto& [list, name] : {std::pair{"initContainerStatuses", names::kSidecarContainer},
                                   std::pair{"containerStatuses", names::kAppContainer}}) {
    const json* container = container_status(status, list, name);
    if (container && name == names::kSidecarContainer)
      for (const char* when : {"state", "lastState"})
        facts.sidecar_out_of_memory |=
            text_at(part_at(part_at(*container, when), "terminated"), "reason") == "OOMKilled";
    if (!container) continue;
    if (name == names::kAppContainer) facts.image = text_at(*container, "imageID");
    const json& state = part_at(*container, "state");
    if (name == names::kAppContainer) facts.app_running = part_at(state, "running").is_object();
    if (const json& end = part_at(state, "terminated"); name == names::kAppContainer && end.is_object()) {
      facts.app_ended = true;
      facts.app_exit_code = whole_number<int>(part_at(end, "exitCode")).value_or(1);
      facts.reason = text_at(end, "reason");
      facts.app_message = text_at(end, "message");
      facts.app_finalized = facts.app_message.contains(names::kFinalizedNote);
      if (is_final(facts.reason)) facts.cannot_start = true;
    }
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"})
    for (const json& container : part_at(status, list)) note_waiting(container, facts);
  for (const json& container : part_at(status, "containerStatuses"))
    facts.others_run |= text_at(container, "name") != names::kAppContainer &&
                        part_at(part_at(container, "state"), "running").is_object();
  // The node may end a pod as a whole (evicted, lost).
  const bool failed = text_at(status, "phase") == "Failed";
  if (failed && !facts.app_ended) {
    facts.app_ended = facts.pod_ended = true;
    facts.app_running = false;
    facts.app_exit_code = 1;
    note_end(pod, facts);
    facts.cannot_start = is_final(facts.reason) || is_failed_creation(facts.reason);  // nothing tries again
  } else if (failed && is_killed(facts.app_exit_code) && !text_at(status, "reason").empty()) {
    facts.pod_ended = true;
    note_end(pod, facts);
  }
  name_user_namespace(status, facts);
  return facts;
}

std::string runtime_image_of(const Observed& o) {
  if (const std::string& stored = o.job.status.runtime_image; !stored.empty()) return stored;
  for (const crds::RankPlace& place : o.job.status.ranks)
    if (const auto pod = o.pods.find(place.pod); pod != o.pods.end() && !pod->second.runtime_image.empty())
      return pod->second.runtime_image;
  return "";
}

observe::NodeFacts node_facts(const json& node, const std::string& set_label) {
  observe::NodeFacts facts;
  const json& metadata = part_at(node, "metadata");
  facts.name = text_at(metadata, "name");
  facts.uid = text_at(metadata, "uid");
  facts.set = text_at(part_at(metadata, "labels"), set_label);
  const std::string speed = text_at(part_at(metadata, "annotations"), names::kAnnotationSpeed);
  if (const double value = std::strtod(speed.c_str(), nullptr); value > 0 && std::isfinite(value)) {
    facts.speed = value;
    facts.speed_told = true;
  }
  facts.cordoned = flag_at(part_at(node, "spec"), "unschedulable", false);
  return facts;
}

observe::CpuFacts cpu_facts(const Observed& o) {
  std::vector<observe::RankCpu> ranks;
  for (const crds::RankPlace& place : o.job.status.ranks) {
    observe::RankCpu& rank =
        ranks.emplace_back(observe::RankCpu{.set = place.set, .node = place.node, .cpu = {}, .seen = {}});
    const auto s = o.sidecars.find(place.pod);
    if (s == o.sidecars.end() || !s->second.status) continue;
    rank.cpu = CpuFeatures(s->second.status->cpu_features);
    rank.seen = CpuFeatures(s->second.status->program_features);
  }
  return {o.nodes, std::move(ranks)};
}

std::vector<observe::NodeFacts> nodes_without_jobs(const Observed& o) {
  std::vector<observe::NodeFacts> nodes = o.nodes;
  for (observe::NodeFacts& node : nodes) {
    node.taken = 0;
    const auto slots = o.queue.on_node.find(node.name);
    if (slots == o.queue.on_node.end()) continue;
    node.slots = std::max(slots->second, 1u);  // 0 would mean that there is no limit
    node.cordoned = slots->second == 0;
  }
  return nodes;
}

}  // namespace bsp::reconcile
