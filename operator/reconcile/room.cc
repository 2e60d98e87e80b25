#include "operator/reconcile/room.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "crds/meta.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

// A null value if there is none.
const json& within(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto it = object.find(name);
  return it == object.end() ? none : *it;
}

std::string text_within(const json& object, const char* name) {
  const json& value = within(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// Quantities may be written as numbers.
std::string quantity_text(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::int64_t amount(const json& list, const char* name, bool milli) {
  const json& value = within(list, name);
  if (value.is_null()) return 0;
  const auto read = milli ? crds::quantity_milli(quantity_text(value)) : crds::quantity_value(quantity_text(value));
  return read ? static_cast<std::int64_t>(std::min<std::uint64_t>(*read, INT64_MAX / 4096)) : 0;
}

Resources asked(const json& container) {
  const json& resources = within(container, "resources");
  const json &requests = within(resources, "requests"), &limits = within(resources, "limits");
  auto of = [&](const char* name, bool milli) {
    return within(requests, name).is_null() ? amount(limits, name, milli) : amount(requests, name, milli);
  };
  return {of("cpu", true), of("memory", false), 0};
}

bool tolerates(const json& toleration, const json& taint) {
  const std::string key = text_within(toleration, "key"), effect = text_within(toleration, "effect");
  if (!effect.empty() && effect != text_within(taint, "effect")) return false;
  if (text_within(toleration, "operator") == "Exists") return key.empty() || key == text_within(taint, "key");
  return key == text_within(taint, "key") && text_within(toleration, "value") == text_within(taint, "value");
}

}  // namespace

Resources requests_of(const json& pod_spec) {
  Resources beside;        // native sidecars, which go on while a later init container runs
  Resources at_start;      // the most that is asked for before the containers run
  for (const json& container : within(pod_spec, "initContainers")) {
    Resources then = asked(container);
    const bool stays = text_within(container, "restartPolicy") == "Always";
    then += beside;
    if (stays) beside = then;
    at_start.cpu = std::max(at_start.cpu, then.cpu);
    at_start.memory = std::max(at_start.memory, then.memory);
  }
  Resources all = beside;
  for (const json& container : within(pod_spec, "containers")) all += asked(container);
  const json& overhead = within(pod_spec, "overhead");
  return {std::max(all.cpu, at_start.cpu) + amount(overhead, "cpu", true),
          std::max(all.memory, at_start.memory) + amount(overhead, "memory", false), 1};
}

Resources allocatable_of(const json& node) {
  const json& list = within(within(node, "status"), "allocatable");
  return {amount(list, "cpu", true), amount(list, "memory", false), amount(list, "pods", false)};
}

std::uint32_t slots_of(Resources room, const Resources& rank) {
  constexpr std::int64_t kCore = 1000;
  if (room.pods <= 0 || room.cpu <= 0 || room.memory < 0) return 0;
  std::int64_t slots = room.pods;
  slots = std::min(slots, rank.cpu > 0 ? room.cpu / rank.cpu : std::max<std::int64_t>(1, room.cpu / kCore));
  if (rank.memory > 0) slots = std::min(slots, room.memory / rank.memory);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(slots, 0, 1'000'000));
}

bool is_ready(const json& node) {
  for (const json& condition : within(within(node, "status"), "conditions"))
    if (text_within(condition, "type") == "Ready") return text_within(condition, "status") == "True";
  return true;
}

bool takes_pods_of(const json& node, const json& pod_template) {
  const json &spec = within(node, "spec"), &pod = within(pod_template, "spec");
  if (within(spec, "unschedulable") == true) return false;
  if (!is_ready(node)) return false;
  const json& tolerations = within(pod, "tolerations");
  for (const json& taint : within(spec, "taints")) {
    if (text_within(taint, "effect") == "PreferNoSchedule") continue;
    if (std::none_of(tolerations.begin(), tolerations.end(), [&](const json& t) { return tolerates(t, taint); }))
      return false;
  }
  if (const json& selector = within(pod, "nodeSelector"); selector.is_object())
    for (const auto& [label, value] : selector.items())
      if (within(within(within(node, "metadata"), "labels"), label.c_str()) != value) return false;
  return true;
}

}  // namespace bsp::reconcile
