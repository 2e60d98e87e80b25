#include "operator/local/pod_status.h"

#include <algorithm>

#include "base/json/fields.h"

namespace bsp::local {
namespace {

using nlohmann::json;

json state_of(const ContainerRecord& c) {
  json detail = json::object();
  auto put = [&](const char* field, const std::string& value) {
    if (!value.empty()) detail[field] = value;
  };
  switch (c.phase) {
    case ContainerPhase::kWaiting:
      put("reason", c.reason.empty() ? "ContainerCreating" : c.reason);
      put("message", c.message);
      return {{"waiting", detail}};
    case ContainerPhase::kRunning:
      put("startedAt", c.started_at);
      return {{"running", detail}};
    case ContainerPhase::kTerminated:
      detail["exitCode"] = c.exit_code;
      if (c.exit_code > 128 && c.exit_code < 128 + 65) detail["signal"] = c.exit_code - 128;
      put("reason", c.reason);
      put("message", c.message);
      put("startedAt", c.started_at);
      put("finishedAt", c.finished_at);
      return {{"terminated", detail}};
  }
  return {};
}

json condition(const std::string& type, bool value, const json& before, Time now) {
  const std::string status = value ? "True" : "False";
  std::string since = to_rfc3339(now);
  for (const json& old : part_at(before, "conditions"))
    if (text_at(old, "type") == type && text_at(old, "status") == status)
      if (const std::string then = text_at(old, "lastTransitionTime"); !then.empty()) since = then;
  return {{"type", type}, {"status", status}, {"lastTransitionTime", since}};
}

}  // namespace

std::string pod_phase(const PodRecord& pod) {
  if (!pod.reason.empty()) return "Failed";
  bool all_ended = true;
  bool any_failed = false;
  bool all_begun = true;
  for (const ContainerRecord& c : pod.containers) {
    if (c.role == ContainerRole::kSidecar) continue;
    const bool ended = c.phase == ContainerPhase::kTerminated && !c.will_restart;
    if (c.role == ContainerRole::kInit) {
      if (ended && c.exit_code != 0) return "Failed";
      if (!ended) all_begun = false;
      continue;
    }
    all_ended = all_ended && ended;
    any_failed = any_failed || (ended && c.exit_code != 0);
    all_begun = all_begun && (c.phase != ContainerPhase::kWaiting || c.restarts > 0);
  }
  if (pod.containers.empty() || !all_begun) return "Pending";
  if (all_ended) return any_failed ? "Failed" : "Succeeded";
  return "Running";
}

json pod_status(const PodRecord& pod, const json& before, Time now) {
  json status = {{"phase", pod_phase(pod)}};
  auto put = [&](const char* field, const std::string& value) {
    if (!value.empty()) status[field] = value;
  };
  put("reason", pod.reason);
  put("message", pod.message);
  put("podIP", pod.pod_ip);
  if (!pod.pod_ip.empty()) status["podIPs"] = {{{"ip", pod.pod_ip}}};
  put("hostIP", pod.host_ip);
  put("startTime", pod.start_time);
  bool ready = !pod.containers.empty();
  bool initialized = true;
  for (const ContainerRecord& c : pod.containers) {
    const bool running = c.phase == ContainerPhase::kRunning;
    json entry = {{"name", c.name}, {"image", c.image}, {"restartCount", c.restarts}, {"state", state_of(c)}};
    const bool done = c.role == ContainerRole::kInit && c.phase == ContainerPhase::kTerminated && c.exit_code == 0;
    if (!c.image_id.empty()) entry["imageID"] = "podman://" + c.image_id;
    if (!c.cpu_limit.empty()) entry["resources"] = {{"limits", {{"cpu", c.cpu_limit}}}};
    entry["started"] = running;
    entry["ready"] = running || done;
    if (c.role != ContainerRole::kInit) ready = ready && running;
    if (c.role == ContainerRole::kInit) initialized = initialized && done;
    status[c.role == ContainerRole::kApp ? "containerStatuses" : "initContainerStatuses"].push_back(entry);
  }
  status["conditions"] = {condition("PodScheduled", true, before, now),
                          condition("Initialized", initialized, before, now),
                          condition("ContainersReady", ready, before, now), condition("Ready", ready, before, now)};
  return status;
}

}  // namespace bsp::local
