#include "operator/reconcile/observed.h"

#include <algorithm>
#include <cstdlib>
#include <format>

#include "base/json/fields.h"
#include "crds/names.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

const json* container_status(const json& pod_status, const char* list, std::string_view name) {
  if (!pod_status.contains(list)) return nullptr;
  for (const json& status : pod_status[list])
    if (status.value("name", "") == name) return &status;
  return nullptr;
}

// Waiting for a reason that no waiting cures.
bool is_final(const std::string& reason) {
  return reason.starts_with("ErrImage") || reason == "ImagePullBackOff" || reason == "InvalidImageName" ||
         reason == "ContainerCannotRun" || reason == "CreateContainerError" || reason == "CreateContainerConfigError" ||
         reason == "RunContainerError" || reason == "StartError";
}

}  // namespace

PodFacts pod_facts(const json& pod) {
  PodFacts facts;
  const json& metadata = pod.at("metadata");
  facts.uid = metadata.value("uid", "");
  facts.deleting = metadata.contains("deletionTimestamp");
  if (pod.contains("spec")) facts.node = pod["spec"].value("nodeName", "");
  if (metadata.contains("labels")) {
    const json& labels = metadata["labels"];
    facts.set = labels.value(std::string(names::kLabelSet), "");
    facts.rank = static_cast<std::uint32_t>(
        std::strtoul(labels.value(std::string(names::kLabelRank), "0").c_str(), nullptr, 10));
  }
  if (!pod.contains("status") || !pod["status"].is_object()) return facts;
  const json& status = pod["status"];
  if (const std::string ip = status.value("podIP", ""); !ip.empty())
    facts.address = ip.find(':') == std::string::npos ? std::format("{}:{}", ip, names::kSidecarPort)
                                                      : std::format("[{}]:{}", ip, names::kSidecarPort);
  if (status.contains("conditions"))
    for (const json& condition : status["conditions"])
      if (condition.value("type", "") == "PodScheduled" && condition.value("status", "") == "False")
        facts.unscheduled = condition.value("message", "");
  for (const auto& [list, name] : {std::pair{"initContainerStatuses", names::kSidecarContainer},
                                   std::pair{"containerStatuses", names::kAppContainer}}) {
    const json* container = container_status(status, list, name);
    if (container && name == names::kSidecarContainer)
      for (const char* when : {"state", "lastState"})
        facts.sidecar_out_of_memory |=
            text_at(part_at(part_at(*container, when), "terminated"), "reason") == "OOMKilled";
    if (!container || !container->contains("state")) continue;
    const json& state = (*container)["state"];
    if (state.contains("waiting") && is_final(state["waiting"].value("reason", ""))) {
      facts.cannot_start = true;
      facts.reason = state["waiting"].value("reason", "");
      facts.app_message = state["waiting"].value("message", "");
    }
    if (name == names::kAppContainer && state.contains("terminated")) {
      const json& end = state["terminated"];
      facts.app_ended = true;
      facts.app_exit_code = end.value("exitCode", 1);
      facts.reason = end.value("reason", "");
      facts.app_message = end.value("message", "");
      if (is_final(facts.reason)) facts.cannot_start = true;
    }
  }
  for (const json& container : part_at(status, "containerStatuses"))
    facts.others_run |= text_at(container, "name") != names::kAppContainer &&
                        part_at(part_at(container, "state"), "running").is_object();
  // The node may end a pod as a whole (evicted, lost).
  const std::string phase = status.value("phase", "");
  if (phase == "Failed" && !facts.app_ended) {
    facts.app_ended = facts.pod_ended = true;
    facts.app_exit_code = 1;
    facts.reason = status.value("reason", "PodFailed");
    facts.app_message = status.value("message", "the node ended the pod");
    facts.cannot_start = is_final(facts.reason);
  }
  return facts;
}

std::string set_label(const std::string& wanted, const std::vector<json>& nodes) {
  auto is_carried = [&](const std::string& label) {
    return std::ranges::any_of(
        nodes, [&](const json& node) { return node.at("metadata").value("labels", json::object()).contains(label); });
  };
  if (wanted != names::kLabelSet || is_carried(wanted)) return wanted;
  for (const std::string_view label : names::kPoolLabels)
    if (is_carried(std::string(label))) return std::string(label);
  return wanted;
}

observe::NodeFacts node_facts(const json& node, const std::string& set_label) {
  observe::NodeFacts facts;
  const json& metadata = node.at("metadata");
  facts.name = metadata.value("name", "");
  if (metadata.contains("labels")) facts.set = metadata["labels"].value(set_label, "");
  if (metadata.contains("annotations")) {
    const std::string speed = metadata["annotations"].value(std::string(names::kAnnotationSpeed), "");
    if (const double value = std::strtod(speed.c_str(), nullptr); value > 0) facts.speed = value;
  }
  if (node.contains("spec")) facts.cordoned = node["spec"].value("unschedulable", false);
  return facts;
}

}  // namespace bsp::reconcile
