#include "operator/reconcile/kernel/observed.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <format>

#include "base/core/positive_number.h"
#include "base/json/fields.h"
#include "crds/names.h"
#include "operator/reconcile/capacity/resources.h"
#include "operator/reconcile/kernel/checkpoints/skew.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

// Of a pod's spec or status.
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
  const json& waiting = part_at(part_at(container, "state"), "waiting");
  const std::string reason = text_at(waiting, "reason"), message = text_at(waiting, "message");
  const auto local = local_of(text_at(container, "name"));
  bool delays = false;
  for (std::uint32_t i = 0; i < facts.apps.size(); ++i) {
    AppFacts& app = facts.apps[i];
    const bool another = local && *local < facts.apps.size() && *local != i;  // seat's container
    if (app.ended || another) continue;
    if (is_final(reason) && !app.running) {
      app.cannot_start = true;
      app.reason = reason;
      app.message = message;
    } else if (!is_usual(reason)) {
      delays = true;
    }
  }
  if (!delays || !facts.start_delay.empty()) return;
  facts.start_delay = std::format("container {} waits: {}{}{}", text_at(container, "name"), reason,
                                  message.empty() ? "" : ": ", message);
  facts.delayed_by_image = is_of_image(reason);
}

bool is_killed(int exit_code) { return exit_code == 128 + SIGKILL || exit_code == 128 + SIGTERM; }

// Why the node ended a pod: of one whose program it had not started or not seen to end, and of one whose program it has killed
// with it, as its container's exit code alone doesn't tell.
void note_end(const json& pod, AppFacts& facts) {
  const json& status = part_at(pod, "status");
  facts.reason = text_at(status, "reason");
  facts.message = text_at(status, "message");
  for (const json& container : part_at(status, "initContainerStatuses")) {
    const json& end = part_at(part_at(container, "state"), "terminated");
    const int code = whole_number<int>(part_at(end, "exitCode")).value_or(0);
    if (code == 0 || !facts.reason.empty()) continue;
    facts.reason = "InitContainerFailed";
    facts.message = std::format("init container {} ended with code {}{}", text_at(container, "name"), code,
                                text_at(end, "reason") == "OOMKilled" ? " (out of memory)" : "");
  }
  if (facts.reason == "DeadlineExceeded")
    facts.message = "spec.template.spec.activeDeadlineSeconds has passed; raise it, or use spec.runPolicy's";
  if (facts.message.contains("EmptyDir volume"))
    facts.message += facts.message.contains("\"bsp-run\"")
                         ? " (spec.checkpoint.sizeLimit)"
                         : " (emptyDir.sizeLimit of the volume in spec.template.spec.volumes)";
  if (facts.reason.empty()) facts.reason = "PodFailed";
  if (facts.message.empty()) facts.message = "the node ended the pod";
}

void note_app(const json& state, AppFacts& app) {
  app.running = part_at(state, "running").is_object();
  const json& end = part_at(state, "terminated");
  if (!end.is_object()) return;
  app.ended = true;
  app.exit_code = whole_number<int>(part_at(end, "exitCode")).value_or(1);
  app.reason = text_at(end, "reason");
  app.message = text_at(end, "message");
  app.finalized = app.message.contains(names::kFinalizedNote);
  if (is_final(app.reason)) app.cannot_start = true;
}

void note_cpu(const json& container, AppFacts& app) {
  const json& resources = part_at(container, "resources");
  app.cpu_limit = cpu_in(resources, "limits");
  app.cpu_request = cpu_requested(resources);
  for (const json& policy : part_at(container, "resizePolicy"))
    app.keeps_cpu |= text_at(policy, "resourceName") == "cpu" && text_at(policy, "restartPolicy") == "RestartContainer";
}

void note_resizing(const json& condition, PodFacts& facts) {
  const std::string type = text_at(condition, "type"), reason = text_at(condition, "reason");
  const bool pending = type == "PodResizePending";
  if ((!pending && type != "PodResizeInProgress") || text_at(condition, "status") != "True") return;
  // A later one may wait while another is in progress.
  if (!pending && facts.resizing != Resizing::kNo) return;
  facts.resizing = !pending                 ? Resizing::kInProgress
                   : reason == "Infeasible" ? Resizing::kInfeasible
                                            : Resizing::kDeferred;
  facts.resize_message = text_at(condition, "message");
}

// The node may end a pod as a whole (evicted, lost).
void note_failed_pod(const json& pod, AppFacts& app) {
  if (!app.ended) {
    app.ended = app.pod_ended = true;
    app.running = false;
    app.exit_code = 1;
    note_end(pod, app);
    app.cannot_start = is_final(app.reason) || is_failed_creation(app.reason);  // nothing tries again
  } else if (is_killed(app.exit_code) && !text_at(part_at(pod, "status"), "reason").empty()) {
    app.pod_ended = true;
    note_end(pod, app);
  }
}

bool is_seat(const json& container, const PodFacts& facts) {
  const auto local = local_of(text_at(container, "name"));
  return local && *local < facts.apps.size();
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
  std::vector<std::string*> said{&facts.start_delay};
  for (AppFacts& app : facts.apps) said.push_back(&app.message);
  for (std::string* text : said)
    if (!text->empty())
      *text +=
          "; a file system such as NFS or Lustre can't be mounted in the pod's user namespace: set hostUsers: true in "
          "spec.template.spec, or for all jobs the chart's jobs.userNamespaces: false";
}

}  // namespace

const AppFacts& PodFacts::app(std::uint32_t local) const {
  static const AppFacts unknown;
  return local < apps.size() ? apps[local] : unknown;
}

const PodFacts* Observed::pod(const Seat& seat) const {
  const auto it = pods.find(seat.pod);
  return it == pods.end() ? nullptr : &it->second;
}
const AppFacts* Observed::app(const Seat& seat) const {
  const PodFacts* facts = pod(seat);
  return facts ? &facts->app(seat.local) : nullptr;
}
const SidecarFacts* Observed::sidecar(const Seat& seat) const {
  const auto it = sidecars.find(seat);
  return it == sidecars.end() ? nullptr : &it->second;
}
const wire::RankStatus* Observed::said(const Seat& seat) const {
  const SidecarFacts* facts = sidecar(seat);
  return facts && facts->status ? &*facts->status : nullptr;
}

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
  facts.account = account_of(pod);
  facts.mounts = mounts_of(pod);
  const PodRequest request = request_of(pod);
  const std::vector<std::uint32_t> ranks = request.ranks();
  facts.apps.resize(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) facts.apps[i].rank = ranks[i];
  facts.generation = request.generation;
  facts.attempt = request.attempt;
  facts.created = from_rfc3339(text_at(metadata, "creationTimestamp"));
  if (const std::string ip = text_at(status, "podIP"); !ip.empty())
    facts.address = ip.find(':') == std::string::npos ? std::format("{}:{}", ip, names::kSidecarPort)
                                                      : std::format("[{}]:{}", ip, names::kSidecarPort);
  for (const json& condition : part_at(status, "conditions")) {
    note_resizing(condition, facts);
    if (text_at(condition, "type") == "PodScheduled" && text_at(condition, "status") == "False")
      facts.unscheduled = text_at(condition, "message");
    if (text_at(condition, "type") == "DisruptionTarget" && text_at(condition, "status") == "True") {
      const std::string message = text_at(condition, "message");
      facts.disruption = text_at(condition, "reason") + (message.empty() ? "" : ", " + message);
    }
  }
  if (const json* sidecar = container_status(status, "initContainerStatuses", names::kSidecarContainer))
    for (const char* when : {"state", "lastState"})
      facts.sidecar_out_of_memory |= text_at(part_at(part_at(*sidecar, when), "terminated"), "reason") == "OOMKilled";
  const bool of_pod = !part_at(part_at(pod, "spec"), "resources").empty();
  for (std::uint32_t local = 0; local < facts.apps.size(); ++local) {
    if (const json* container = container_status(part_at(pod, "spec"), "containers", container_of(local)))
      note_cpu(*container, facts.apps[local]);
    facts.apps[local].keeps_cpu |= of_pod;
    if (const json* container = container_status(status, "containerStatuses", container_of(local))) {
      note_app(part_at(*container, "state"), facts.apps[local]);
      facts.apps[local].cpu_given = cpu_in(part_at(*container, "resources"), "limits");
      if (local == 0) facts.image = text_at(*container, "imageID");
    }
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"})
    for (const json& container : part_at(status, list)) note_waiting(container, facts);
  for (const json& container : part_at(status, "containerStatuses"))
    facts.others_run |= !is_seat(container, facts) && part_at(part_at(container, "state"), "running").is_object();
  if (text_at(status, "phase") == "Failed")
    for (AppFacts& app : facts.apps) note_failed_pod(pod, app);
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
  if (const auto value = positive_number(speed)) {
    facts.speed = *value;
    facts.speed_told = true;
  }
  const std::string price = text_at(part_at(metadata, "annotations"), names::kAnnotationPrice);
  if (const auto value = positive_number(price))
    facts.price = *value;
  else
    facts.wrong_price = price;
  facts.instance_type = text_at(part_at(metadata, "labels"), names::kLabelInstanceType);
  facts.cordoned = flag_at(part_at(node, "spec"), "unschedulable", false);
  return facts;
}

observe::CpuFacts cpu_facts(const Observed& o) {
  std::vector<observe::RankCpu> ranks;
  for (const crds::RankPlace& place : o.job.status.ranks) {
    observe::RankCpu& rank =
        ranks.emplace_back(observe::RankCpu{.set = place.set, .node = place.node, .cpu = {}, .seen = {}});
    const wire::RankStatus* s = o.said(place.seat());
    if (!s) continue;
    rank.cpu = CpuFeatures(s->cpu_features);
    rank.seen = CpuFeatures(s->program_features);
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
