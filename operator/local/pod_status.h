// What a node knows of one container, and the pod status that follows from it. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "base/core/clock.h"
#include "operator/local/pod_plan.h"

namespace bsp::local {

enum class ContainerPhase { kWaiting, kRunning, kTerminated };

struct ContainerRecord {
  ContainerRole role = ContainerRole::kApp;
  std::string name;
  std::string image;
  ContainerPhase phase = ContainerPhase::kWaiting;
  std::string reason;  // waiting: ContainerCreating, ErrImageNeverPull, …; terminated: Completed, Error, OOMKilled, …
  std::string message;
  int exit_code = 0;
  unsigned restarts = 0;
  std::string started_at;
  std::string finished_at;
  bool will_restart = false;
};

struct PodRecord {
  std::string pod_ip;
  std::string host_ip;
  std::string start_time;
  std::string reason;  // of a failure of the pod as a whole
  std::string message;
  std::vector<ContainerRecord> containers;
};

// Pending, Running, Succeeded or Failed.
std::string pod_phase(const PodRecord& pod);
// `before` is the status written last: conditions keep their times while they do not change.
nlohmann::json pod_status(const PodRecord& pod, const nlohmann::json& before, Time now);

}  // namespace bsp::local
