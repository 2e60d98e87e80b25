#include "operator/reconcile/kernel/start/placement.h"

#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "crds/bspjob.h"
#include "operator/reconcile/capacity/node_affinity.h"
#include "operator/reconcile/kernel/json_child.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

json& node_affinity_of(json& spec) {
  return child(child(spec, "affinity", json::value_t::object), "nodeAffinity", json::value_t::object);
}

// The terms of a node selector are alternatives: each of the user's gets our requirement. An empty one matches nothing
// and has to stay so.
void require(json& spec, const char* list, const json& requirement) {
  json& terms = child(child(node_affinity_of(spec), kRequiredAffinity, json::value_t::object), "nodeSelectorTerms",
                      json::value_t::array);
  if (terms.empty()) {
    terms.push_back({{list, json::array({requirement})}});
    return;
  }
  for (json& term : terms)
    if (has_requirements(term)) child(term, list, json::value_t::array).push_back(requirement);
}

// By the label, since not all autoscalers understand a node's name in an affinity.
void prefer(json& spec, const char* where, const std::string& node) {
  child(node_affinity_of(spec), "preferredDuringSchedulingIgnoredDuringExecution", json::value_t::array)
      .push_back({{"weight", 100},
                  {"preference",
                   {{"matchExpressions",
                     {{{"key", "kubernetes.io/hostname"}, {"operator", where}, {"values", json::array({node})}}}}}}});
}
void require_other(json& spec, const std::string& node) {
  require(spec, "matchFields", {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", json::array({node})}});
}

bool flag(const json& spec, const char* name) { return flag_at(spec, name, false); }

}  // namespace

void require_platform(json& spec) {
  json& selector = child(spec, "nodeSelector", json::value_t::object);
  for (const auto& [label, value] : names::kPlatformLabels)
    if (!selector.contains(label)) selector[std::string(label)] = value;
}

namespace {
// Without it, Kubernetes would end the pods at once where their node gets such a taint. The toleration of a node that doesn't answer is the
// one that Kubernetes would add, which a wildcard keeps it from adding.
void have_time_to_leave(json& spec, std::uint64_t seconds) {
  json& tolerations = child(spec, "tolerations", json::value_t::array);
  const auto is_tolerated = [&](std::string_view key) {
    return std::ranges::any_of(tolerations, [&](const json& t) {
      const std::string effect = text_at(t, "effect"), of = text_at(t, "key");
      return (of == key || of.empty()) && (effect.empty() || effect == "NoExecute");
    });
  };
  constexpr int kUsualSeconds = 300;
  json added = json::array();
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    if (!is_tolerated(key))
      added.push_back(
          {{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", kUsualSeconds}});
  if (!is_tolerated(""))
    added.push_back({{"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", seconds}});
  for (json& toleration : added) tolerations.push_back(std::move(toleration));
}
}  // namespace

void place_pod(json& spec, const crds::BspJob& job, const PodRequest& request, const PodOptions& options) {
  // The user's, else Kubernetes' default. bsp-init ends at once whatever has no use for it, such as a source after its move.
  json& grace = spec["terminationGracePeriodSeconds"];
  if (grace.is_null()) grace = 30;
  if (!options.scheduled) {
    if (!request.node.empty()) spec["nodeName"] = request.node;
    return;
  }
  spec.erase("nodeName");  // it would bypass the scheduler, and with it quotas, taints and capacity
  require_platform(spec);
  if (!request.set.empty())
    require(spec, "matchExpressions",
            {{"key", job.spec.sets.label}, {"operator", "In"}, {"values", json::array({request.set})}});
  if (request.pinned && !request.node.empty())
    require(spec, "matchFields",
            {{"key", "metadata.name"}, {"operator", "In"}, {"values", json::array({request.node})}});
  // Nodes of a Set may differ: what the move gains was computed for this one, and its slot is reserved.
  else if (request.target && !request.node.empty())
    prefer(spec, "In", request.node);
  if (!request.rather_not_on.empty()) prefer(spec, "NotIn", request.rather_not_on);
  if (!request.not_on.empty()) require_other(spec, request.not_on);
  for (const std::string& node : request.unfit) require_other(spec, node);
  have_time_to_leave(spec, job.spec.run_policy.drain_timeout_seconds);
  // With 0 the API server would drop the object while the kubelet is still ending the containers, and another copy of
  // the rank might be started beside one that runs. (Our own node drops it only when they are gone.)
  if (grace == 0) grace = 1;
  const bool on_host = flag(spec, "hostNetwork") || flag(spec, "hostPID") || flag(spec, "hostIPC");
  if (options.user_namespace && !on_host && !spec.contains("hostUsers")) spec["hostUsers"] = false;
}

Result<void> check_without_image(const crds::BspJobSpec& spec) {
  const json* app = crds::app_container(spec);
  if (!app || part_at(*app, "command").empty())
    return fail(
        ErrorCode::kInvalid,
        "spec.template.spec.containers[app].command: required: the operator starts the program and can't read in "
        "the image what it would run by itself; write it there, for example command: [my_program]");
  // What the template demands of the container holds for the program: bsp-init is root either way.
  const json& pod = part_at(part_at(spec.pod_template, "spec"), "securityContext");
  const json& own = part_at(*app, "securityContext");
  const auto setting = [&](const char* name) -> const json& {
    const json& value = part_at(own, name);
    return value.is_null() ? part_at(pod, name) : value;
  };
  const json& user = setting("runAsUser");
  if (setting("runAsNonRoot") == true && (!user.is_number_integer() || user == 0))
    return fail(
        ErrorCode::kInvalid,
        "spec.template.spec.containers[app].securityContext.runAsUser: required and not 0, because runAsNonRoot is "
        "set and the operator can't read in the image who its user is; write the uid there");
  return {};
}

}  // namespace bsp::reconcile
