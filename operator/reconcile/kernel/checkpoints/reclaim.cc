#include "operator/reconcile/kernel/checkpoints/reclaim.h"

#include <algorithm>
#include <format>
#include <string_view>
#include <utility>

#include "base/json/fields.h"
#include "crds/names.h"
#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "operator/reconcile/kernel/conditions.h"
#include "operator/reconcile/kernel/json_child.h"
#include "operator/reconcile/kernel/pods/pod_parts.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

constexpr const char* kGivenUp = "GivenUp";
// A container that has not started by then is reported.
constexpr std::chrono::seconds kUsualStart{30};

// It has begun at least one, or its status doesn't say.
bool may_have_sets(const crds::BspJobStatus& status) {
  if (status.checkpoint) return status.checkpoint->ids_used > 0;
  return status.phase != crds::JobPhase::kPending || status.attempt > 0 || status.start_time != Time{};
}

bool retains(const crds::BspJob& job) { return job.spec.checkpoint.reclaim_policy == crds::ReclaimPolicy::kRetain; }

// Sets that stay, and are marked as those of a job that wanted them removed, lose their mark.
bool reclaims(const Observed& o) {
  if (!o.can_remove_sets || !makes_sets(o.job)) return false;
  if (retains(o.job)) return o.job.status.checkpoint && o.job.status.checkpoint->marked;
  return may_have_sets(o.job.status);
}

std::string place_of_sets(const crds::BspJob& job) {
  const crds::CheckpointStorage& storage = *job.spec.checkpoint.storage;
  const std::string& uid = job.metadata.uid;
  if (storage.persistent_volume_claim)
    return std::format("{}/ of claim {}", uid, storage.persistent_volume_claim->claim_name);
  if (storage.host_path) return std::format("{}/{} of the nodes", storage.host_path->path, uid);
  const crds::S3Source& s3 = *storage.s3;
  return std::format("s3://{}/{}{}{}/ at {}", s3.bucket, s3.prefix, s3.prefix.empty() ? "" : "/", uid, s3.endpoint);
}

struct Trouble {
  std::string reason, message;  // "": none yet
};
Trouble trouble_of(const Observed& o) {
  if (!o.sets_used_by.empty() && !retains(o.job))
    return {"InUse", std::format("job {} goes on from them until it has stored its own", o.sets_used_by)};
  const std::string pod = remover_name({o.job.metadata.name, o.job.metadata.uid});
  if (o.remover_refused)
    return {"PodRefused",
            std::format("pod {}, which would remove them, can't be created: {}", pod, o.remover_refused->message)};
  if (!o.remover.said.empty()) return {"StorageRefused", o.remover.said};
  if (!o.remover.waits.empty() && o.reclaiming_for > kUsualStart)
    return {"PodWaits", std::format("pod {}, which would remove them, doesn't start: {}", pod, o.remover.waits)};
  return {};
}

// Nobody may create anything there any more, and waiting would only hold the namespace.
bool namespace_goes(const Observed& o) {
  return o.remover_refused && o.remover_refused->message.contains("because it is being terminated");
}

void report(const Observed& o, Trouble trouble, crds::BspJobStatus& status, Reclaim& reclaim) {
  const crds::Condition* before = crds::find_condition(status.conditions, kSetsNotRemoved);
  if (before && before->reason == trouble.reason && before->message == with_remedy(kSetsNotRemoved, trouble.message))
    return;
  turn_condition(o, status, kSetsNotRemoved, true, std::move(trouble.reason), std::move(trouble.message));
  reclaim.stores = true;
  reclaim.events.push_back(
      {"Warning", kSetsNotRemoved, crds::find_condition(status.conditions, kSetsNotRemoved)->message});
}

void give_up(const Observed& o, const Trouble& trouble, crds::BspJobStatus& status, Reclaim& reclaim) {
  const std::string why = trouble.message.empty() ? "the pod that does it has not ended" : trouble.message;
  const std::string message =
      retains(o.job)
          ? std::format(
                "the checkpoint sets of the deleted job stay: {}; but they are marked as if it had left them behind, "
                "and "
                "go in some days unless you remove what is named of-… there. The mark could not be taken off: {}",
                place_of_sets(o.job), why)
          : std::format(
                "the checkpoint sets of the deleted job stay: {}; remove them by hand. They were not removed: {}",
                place_of_sets(o.job), why);
  turn_condition(o, status, kSetsNotRemoved, true, kGivenUp, message);
  reclaim.stores = true;
}

// There is nothing to wait for any more.
std::string without_remedy(std::string message) {
  const std::string remedy = std::string("; ") + condition_kind(kSetsNotRemoved).remedy;
  if (message.ends_with(remedy)) message.resize(message.size() - remedy.size());
  return message;
}

void copy(const json& from, json& to, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const json& value = part_at(from, name); !value.is_null()) to[name] = value;
}

}  // namespace

bool nothing_runs(const Observed& o) {
  return o.being_made.empty() &&
         std::ranges::all_of(o.pods, [](const auto& entry) { return entry.second.lost || entry.second.vanished; });
}

std::string remover_name(const JobId& job) { return name_of_job(job) + "-reclaim"; }

json make_remover(const crds::BspJob& job, const PodOptions& options) {
  check(job.spec.checkpoint.storage.has_value(), "a job with sets has a storage");
  const crds::CheckpointStorage& storage = *job.spec.checkpoint.storage;
  const json& of_ranks = part_at(job.spec.pod_template, "spec");
  json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  json& metadata = pod["metadata"];
  // With the ranks' labels, by which NetworkPolicies let their sidecars reach the storage.
  if (const json& labels = part_at(part_at(job.spec.pod_template, "metadata"), "labels"); labels.is_object())
    metadata["labels"] = labels;
  child(metadata, "labels", json::value_t::object)[std::string(names::kLabelJob)] = job.metadata.name;
  metadata["name"] = remover_name({job.metadata.name, job.metadata.uid});
  metadata["namespace"] = job.metadata.name_space;
  metadata["ownerReferences"] = owner_reference(job);
  json& spec = pod["spec"];
  spec = {{"restartPolicy", "OnFailure"},  // the kubelet's pauses between two tries grow
          {"automountServiceAccountToken", false},
          {"terminationGracePeriodSeconds", 5}};
  // Where the ranks could run and read, it can.
  copy(of_ranks, spec, {"imagePullSecrets", "nodeSelector", "tolerations", "hostUsers"});
  if (options.scheduled) require_platform(spec);
  const auto shares = [&](const char* what) { return flag_at(of_ranks, what, false); };
  const bool on_host = shares("hostNetwork") || shares("hostPID") || shares("hostIPC");
  if (options.user_namespace && !on_host && !spec.contains("hostUsers")) spec["hostUsers"] = false;
  json security = json::object();
  copy(part_at(of_ranks, "securityContext"), security,
       {"fsGroup", "fsGroupChangePolicy", "supplementalGroups", "seLinuxOptions"});
  if (!security.empty()) spec["securityContext"] = std::move(security);
  json& volumes = child(spec, "volumes", json::value_t::array);
  add_storage(spec, volumes, storage, part_at(of_ranks, "volumes"));
  // Without its keys it says what is missing; without an optional Secret it would wait in silence.
  for (json& volume : volumes)
    if (volume.contains("secret")) volume["secret"]["optional"] = true;
  json container = {{"name", kReclaimContainer},
                    {"image", options.runtime_image},
                    {"imagePullPolicy", options.pull_policy},
                    {"command", {"/bsp/bsp-sidecar", retains(job) ? "--retain-sets" : "--remove-sets"}},
                    {"securityContext", restricted(of_ranks)}};
  put_env(container, names::kEnvJobUid, job.metadata.uid);
  mount_storage(container, storage);
  add_resources(container, job);
  spec["containers"] = json::array({std::move(container)});
  return pod;
}

RemoverFacts remover_facts(const json& pod) {
  RemoverFacts facts{.made = true};
  facts.uid = text_at(part_at(pod, "metadata"), "uid");
  facts.deleting = !part_at(part_at(pod, "metadata"), "deletionTimestamp").is_null();
  const json& status = part_at(pod, "status");
  const std::string phase = text_at(status, "phase");
  facts.done = phase == "Succeeded";
  facts.failed = phase == "Failed";
  if (facts.failed) facts.said = text_at(status, "message");
  for (const json& condition : part_at(status, "conditions"))
    if (text_at(condition, "type") == "PodScheduled" && text_at(condition, "status") == "False")
      facts.waits = text_at(condition, "message");
  for (const json& container : part_at(status, "containerStatuses")) {
    if (text_at(container, "name") != kReclaimContainer) continue;
    for (const char* when : {"lastState", "state"}) {
      const json& end = part_at(part_at(container, when), "terminated");
      const std::string reason = text_at(end, "reason"), message = text_at(end, "message");
      if (!end.is_object() || reason == "Completed") continue;
      facts.said = message.empty() ? std::format("the container that removes them ended: {}", reason) : message;
    }
    const json& waiting = part_at(part_at(container, "state"), "waiting");
    const std::string reason = text_at(waiting, "reason"), message = text_at(waiting, "message");
    if (reason.empty() || reason == "CrashLoopBackOff") continue;
    facts.waits = message.empty() ? reason : std::format("{}: {}", reason, message);
  }
  return facts;
}

Reclaim reclaim_sets(const Observed& o, Duration limit, crds::BspJobStatus& status) {
  Reclaim reclaim;
  const crds::Condition* told = crds::find_condition(status.conditions, kSetsNotRemoved);
  const bool given_up = told && told->status == crds::ConditionStatus::kTrue && told->reason == kGivenUp;
  if (!reclaims(o) || o.remover.done || given_up) {
    reclaim.over = true;
    // Not before: an operator that ends after it has stored that would tell nobody.
    if (given_up && !o.remover.done) reclaim.events.push_back({"Warning", kSetsLeft, without_remedy(told->message)});
    return reclaim;
  }
  Trouble trouble = trouble_of(o);
  if (namespace_goes(o) || o.reclaiming_for > limit) {
    give_up(o, trouble, status, reclaim);
    return reclaim;
  }
  if (!trouble.reason.empty()) report(o, std::move(trouble), status, reclaim);
  reclaim.make_remover = !o.remover.made && (o.sets_used_by.empty() || retains(o.job));
  reclaim.delete_remover = o.remover.failed && !o.remover.deleting;
  return reclaim;
}

}  // namespace bsp::reconcile
