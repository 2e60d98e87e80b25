#include "operator/reconcile/capacity/resources.h"

#include <algorithm>
#include <format>
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

std::int64_t amount(const json& list, std::string_view name, bool milli) {
  const json& value = part_at(list, name);
  if (value.is_null()) return 0;
  const auto read = milli ? crds::quantity_milli(quantity_text(value)) : crds::quantity_value(quantity_text(value));
  return read ? static_cast<std::int64_t>(std::min<std::uint64_t>(*read, kMostAsked)) : 0;
}

Extended extended_in(const json& list) {
  Extended extended;
  if (!list.is_object()) return extended;
  for (const auto& [name, value] : list.items())
    if (name != "cpu" && name != "memory" && name != "pods")
      if (const std::int64_t some = amount(list, name, false); some != 0) extended[name] = some;
  return extended;
}

Resources amounts_in(const json& list) {
  return {amount(list, "cpu", true), amount(list, "memory", false), 0, extended_in(list)};
}

// A limit without a request is one.
Resources requested(const json& resources) {
  const json& requests = part_at(resources, "requests");
  json list = part_at(resources, "limits");
  if (!list.is_object()) return amounts_in(requests);
  if (requests.is_object())
    for (const auto& [name, value] : requests.items())
      if (!value.is_null()) list[name] = value;
  return amounts_in(list);
}

Resources sum_of(Resources a, const Resources& b) {
  a += b;
  a.cpu = std::min(a.cpu, kMostAsked);
  a.memory = std::min(a.memory, kMostAsked);
  for (auto& [name, some] : a.extended) some = std::min(some, kMostAsked);
  return a;
}

Resources most_of(Resources a, const Resources& b) {
  a.cpu = std::max(a.cpu, b.cpu);
  a.memory = std::max(a.memory, b.memory);
  for (const auto& [name, some] : b.extended) a.extended[name] = std::max(a.extended[name], some);
  return a;
}

Resources asked(const json& container) { return requested(part_at(container, "resources")); }

// Of the pod as a whole, which has its own requests of these and no other resources.
bool may_be_of_pod(std::string_view name) { return name.starts_with("hugepages-"); }

// `of_containers`, where the pod as a whole says nothing. A request of its own goes before its containers', and these
// before its limit, which the API server makes the request only if no container has one.
Resources of_whole_pod(const json& resources, Resources of_containers) {
  const Resources requests = amounts_in(part_at(resources, "requests"));
  const Resources limits = amounts_in(part_at(resources, "limits"));
  const auto choose = [](std::int64_t request, std::int64_t& containers, std::int64_t limit) {
    containers = request != 0 ? request : containers != 0 ? containers : limit;
  };
  choose(requests.cpu, of_containers.cpu, limits.cpu);
  choose(requests.memory, of_containers.memory, limits.memory);
  for (const auto* list : {&limits.extended, &requests.extended})
    for (const auto& [name, some] : *list)
      if (may_be_of_pod(name)) of_containers.extended[name] = some;
  return of_containers;
}

// Of the template's containers, and of one more native sidecar that asks for `own`.
Resources requests_with(const json& pod_spec, const Resources& own) {
  Resources beside = own;  // native sidecars, which go on while a later init container runs
  Resources at_start;      // the most that is asked for before the containers run
  for (const json& container : part_at(pod_spec, "initContainers")) {
    const Resources then = sum_of(asked(container), beside);
    if (text_at(container, "restartPolicy") == "Always") beside = then;
    at_start = most_of(std::move(at_start), then);
  }
  Resources all = beside;
  for (const json& container : part_at(pod_spec, "containers")) all = sum_of(std::move(all), asked(container));
  all = of_whole_pod(part_at(pod_spec, "resources"), most_of(std::move(all), at_start));
  all.pods = 1;
  return sum_of(std::move(all), amounts_in(part_at(pod_spec, "overhead")));
}

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
// These say that a kubelet doesn't answer, so no rank can leave it (kernel/silence.h, lost_pods.h).
constexpr std::string_view kSilentTaints[] = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
                                              "node.kubernetes.io/out-of-service"};

bool stays_despite(const json& tolerations, const json& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const json& t) { return tolerates(t, taint) && part_at(t, "tolerationSeconds").is_null(); });
}

}  // namespace

Resources& Resources::operator+=(const Resources& o) {
  cpu += o.cpu, memory += o.memory, pods += o.pods;
  for (const auto& [name, some] : o.extended)
    if ((extended[name] += some) == 0) extended.erase(name);
  return *this;
}

Resources& Resources::operator-=(const Resources& o) {
  cpu -= o.cpu, memory -= o.memory, pods -= o.pods;
  for (const auto& [name, some] : o.extended)
    if ((extended[name] -= some) == 0) extended.erase(name);
  return *this;
}

Resources requests_of(const json& pod_spec) { return requests_with(pod_spec, {}); }

Resources requests_of_rank(const json& pod_template, const json& sidecar_resources) {
  const json& spec = part_at(pod_template, "spec");
  Resources all = requests_with(spec, requested(sidecar_resources));
  if (requests_of(spec).cpu == 0) all.cpu = 0;
  return all;
}

std::int64_t cpu_in(const json& resources, const char* list) { return amount(part_at(resources, list), "cpu", true); }

std::int64_t cpu_requested(const json& resources) { return requested(resources).cpu; }

std::int64_t cpu_used_by_rank(const json& pod_template) {
  const auto limit_in = [](const json& resources) { return cpu_in(resources, "limits"); };
  const json& spec = part_at(pod_template, "spec");
  const json& of_pod = part_at(spec, "resources");
  const std::int64_t limit_of_pod = limit_in(of_pod);
  std::int64_t sum = 0;
  for (const json& container : part_at(spec, "containers")) {
    std::int64_t uses = asked(container).cpu;
    if (text_at(container, "name") == names::kAppContainer) {
      const std::int64_t limit = limit_in(part_at(container, "resources"));
      uses = limit > 0          ? limit
             : limit_of_pod > 0 ? limit_of_pod
                                : std::max({uses, amounts_in(part_at(of_pod, "requests")).cpu, kCore});
    }
    sum = std::min(sum + uses, kMostAsked);
  }
  if (limit_of_pod > 0) sum = std::min(sum, limit_of_pod);
  return std::max<std::int64_t>(sum, 1);
}

Resources allocatable_of(const json& node) {
  const json& list = part_at(part_at(node, "status"), "allocatable");
  Resources all = amounts_in(list);
  all.pods = amount(list, "pods", false);
  return all;
}

std::uint32_t slots_of(Resources free, const Resources& rank, std::uint32_t ranks_per_pod) {
  if (free.pods <= 0 || free.cpu <= 0 || free.memory < 0) return 0;
  std::int64_t slots = std::min(free.pods, kMostAsked) * ranks_per_pod;
  slots = std::min(slots, rank.cpu > 0 ? free.cpu / rank.cpu : std::max<std::int64_t>(1, free.cpu / kCore));
  if (rank.memory > 0) slots = std::min(slots, free.memory / rank.memory);
  for (const auto& [name, each] : rank.extended) {
    const auto left = free.extended.find(name);
    slots = std::min(slots, left == free.extended.end() ? 0 : left->second / each);
  }
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(slots, 0, 1'000'000));
}

std::string leaving(const json& node, const json& pod_template) {
  const json& spec = part_at(node, "spec");
  if (!text_at(part_at(node, "metadata"), "deletionTimestamp").empty()) return "is being deleted";
  if (flag_at(spec, "unschedulable", false)) return "is cordoned";
  for (const json& taint : part_at(spec, "taints")) {
    const std::string key = text_at(taint, "key");
    for (const std::string_view known : kLeavingTaints)
      if (known.ends_with('/') ? key.starts_with(known) : key == known) return "has the taint " + key;
    if (text_at(taint, "effect") == "NoExecute" && !std::ranges::contains(kSilentTaints, key) &&
        !stays_despite(part_at(part_at(pod_template, "spec"), "tolerations"), taint))
      return std::format("has the taint {}:NoExecute", key);
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
  if (!leaving(node, pod_template).empty()) return false;
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

std::string lacking(const Resources& rank, const std::vector<Resources>& nodes) {
  if (nodes.empty()) return "";
  Resources most;
  for (const Resources& node : nodes) most = most_of(std::move(most), node);
  std::string text;
  const auto add = [&](bool lacks, const std::string& what) {
    if (lacks) text += (text.empty() ? "no node of them has " : ", ") + what;
  };
  add(rank.cpu > most.cpu, std::format("the CPU that a rank asks for ({}m; {}m at most)", rank.cpu, most.cpu));
  add(rank.memory > most.memory,
      std::format("the memory that a rank asks for ({} MiB; {} MiB at most)", rank.memory >> 20, most.memory >> 20));
  for (const auto& [name, some] : rank.extended) {
    const std::int64_t there = most.extended.contains(name) ? most.extended.at(name) : 0;
    add(some > there, there == 0 ? name : std::format("{} {}, which a rank asks for", some, name));
  }
  return text;
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
