#include "operator/reconcile/capacity/resources.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json/fields.h"
#include "crds/meta.h"
#include "crds/names.h"
#include "operator/reconcile/capacity/node_affinity.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

constexpr std::int64_t kCore = 1000;

// Quantities may be written as numbers.
std::string quantity_text(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::int64_t amount(const json& list, const char* name, bool milli) {
  const json& value = part_at(list, name);
  if (value.is_null()) return 0;
  const auto read = milli ? crds::quantity_milli(quantity_text(value)) : crds::quantity_value(quantity_text(value));
  return read ? static_cast<std::int64_t>(std::min<std::uint64_t>(*read, kMostAsked)) : 0;
}

Resources requested(const json& resources) {
  const json &requests = part_at(resources, "requests"), &limits = part_at(resources, "limits");
  auto of = [&](const char* name, bool milli) {
    return part_at(requests, name).is_null() ? amount(limits, name, milli) : amount(requests, name, milli);
  };
  return {of("cpu", true), of("memory", false), 0};
}

Resources sum_of(Resources a, const Resources& b) {
  a += b;
  return {std::min(a.cpu, kMostAsked), std::min(a.memory, kMostAsked), a.pods};
}

Resources asked(const json& container) { return requested(part_at(container, "resources")); }

bool tolerates(const json& toleration, const json& taint) {
  const std::string key = text_at(toleration, "key"), effect = text_at(toleration, "effect");
  if (!effect.empty() && effect != text_at(taint, "effect")) return false;
  if (text_at(toleration, "operator") == "Exists") return key.empty() || key == text_at(taint, "key");
  return key == text_at(taint, "key") && text_at(toleration, "value") == text_at(taint, "value");
}

// Keys of taints on nodes that are about to be removed; one that ends with a slash is a prefix.
constexpr std::string_view kLeavingTaints[] = {"karpenter.sh/disrupted",
                                               "karpenter.sh/disruption",
                                               "ToBeDeletedByClusterAutoscaler",
                                               "node.cloudprovider.kubernetes.io/shutdown",
                                               "cloud.google.com/impending-node-termination",
                                               "aws-node-termination-handler/"};

}  // namespace

Resources requests_of(const json& pod_spec) {
  Resources beside;    // native sidecars, which go on while a later init container runs
  Resources at_start;  // the most that is asked for before the containers run
  for (const json& container : part_at(pod_spec, "initContainers")) {
    const Resources then = sum_of(asked(container), beside);
    const bool stays = text_at(container, "restartPolicy") == "Always";
    if (stays) beside = then;
    at_start.cpu = std::max(at_start.cpu, then.cpu);
    at_start.memory = std::max(at_start.memory, then.memory);
  }
  Resources all = beside;
  for (const json& container : part_at(pod_spec, "containers")) all = sum_of(all, asked(container));
  const json& overhead = part_at(pod_spec, "overhead");
  return sum_of({std::max(all.cpu, at_start.cpu), std::max(all.memory, at_start.memory), 1},
                {amount(overhead, "cpu", true), amount(overhead, "memory", false), 0});
}

Resources requests_of_rank(const json& pod_template, const json& sidecar_resources) {
  Resources all = requests_of(part_at(pod_template, "spec"));
  const bool has_a_core = all.cpu == 0;
  all = sum_of(all, requested(sidecar_resources));
  if (has_a_core) all.cpu = 0;
  return all;
}

std::int64_t cpu_used_by_rank(const json& pod_template) {
  std::int64_t sum = 0;
  for (const json& container : part_at(part_at(pod_template, "spec"), "containers")) {
    std::int64_t uses = asked(container).cpu;
    if (text_at(container, "name") == names::kAppContainer) {
      const std::int64_t limit = amount(part_at(part_at(container, "resources"), "limits"), "cpu", true);
      uses = limit > 0 ? limit : std::max(uses, kCore);
    }
    sum = std::min(sum + uses, kMostAsked);
  }
  return std::max<std::int64_t>(sum, 1);
}

Resources allocatable_of(const json& node) {
  const json& list = part_at(part_at(node, "status"), "allocatable");
  return {amount(list, "cpu", true), amount(list, "memory", false), amount(list, "pods", false)};
}

std::uint32_t slots_of(Resources free, const Resources& rank) {
  if (free.pods <= 0 || free.cpu <= 0 || free.memory < 0) return 0;
  std::int64_t slots = free.pods;
  slots = std::min(slots, rank.cpu > 0 ? free.cpu / rank.cpu : std::max<std::int64_t>(1, free.cpu / kCore));
  if (rank.memory > 0) slots = std::min(slots, free.memory / rank.memory);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(slots, 0, 1'000'000));
}

std::string leaving(const json& node) {
  const json& spec = part_at(node, "spec");
  if (!text_at(part_at(node, "metadata"), "deletionTimestamp").empty()) return "is being deleted";
  if (flag_at(spec, "unschedulable", false)) return "is cordoned";
  for (const json& taint : part_at(spec, "taints")) {
    const std::string key = text_at(taint, "key");
    for (const std::string_view known : kLeavingTaints)
      if (known.ends_with('/') ? key.starts_with(known) : key == known) return "has the taint " + key;
  }
  return "";
}

bool is_ready(const json& node) {
  for (const json& condition : part_at(part_at(node, "status"), "conditions"))
    if (text_at(condition, "type") == "Ready") return text_at(condition, "status") == "True";
  return true;
}

json asked_of_nodes(const json& pod_template) {
  const json& spec = part_at(pod_template, "spec");
  json asked = json::object();
  for (const char* name : {"nodeSelector", "tolerations"})
    if (const json& value = part_at(spec, name); !value.is_null()) asked["spec"][name] = value;
  if (const json& terms = required_terms(spec); !terms.is_null())
    asked["spec"]["affinity"]["nodeAffinity"][kRequiredAffinity]["nodeSelectorTerms"] = terms;
  return asked;
}

bool takes_pods_of(const json& node, const json& pod_template) {
  const json &spec = part_at(node, "spec"), &pod = part_at(pod_template, "spec");
  if (!leaving(node).empty()) return false;
  if (!is_ready(node)) return false;
  const json& tolerations = part_at(pod, "tolerations");
  for (const json& taint : part_at(spec, "taints")) {
    if (text_at(taint, "effect") == "PreferNoSchedule") continue;
    if (std::none_of(tolerations.begin(), tolerations.end(), [&](const json& t) { return tolerates(t, taint); }))
      return false;
  }
  const json& labels = part_at(part_at(node, "metadata"), "labels");
  for (const auto& [label, value] : names::kPlatformLabels)
    if (const std::string is = text_at(labels, label); !is.empty() && is != value) return false;
  if (const json& selector = part_at(pod, "nodeSelector"); selector.is_object())
    for (const auto& [label, value] : selector.items())
      if (part_at(labels, label) != value) return false;
  return admits(required_terms(pod), node);
}

std::string set_label(const std::string& wanted, const std::string& kept, const std::vector<json>& nodes) {
  if (!kept.empty()) return kept;
  auto is_carried = [&](const std::string& label) {
    return std::ranges::any_of(
        nodes, [&](const json& node) { return part_at(part_at(node, "metadata"), "labels").contains(label); });
  };
  if (wanted != names::kLabelSet || is_carried(wanted)) return wanted;
  for (const std::string_view label : names::kPoolLabels)
    if (is_carried(std::string(label))) return std::string(label);
  return wanted;
}

std::string kept_label(const crds::BspJob& job) {
  return job.status.phase == crds::JobPhase::kPending ? "" : job.status.set_label;
}

}  // namespace bsp::reconcile
