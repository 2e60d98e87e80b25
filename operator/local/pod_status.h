// A node's record of each container, and the pod status derived from it. Pure.
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
  std::string image_id{};   // "": not known
  std::string cpu_limit{};  // that it has, as its pod says it; "": none
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
  std::string reason;  // if the pod as a whole has failed
  std::string message;
  std::vector<ContainerRecord> containers;
};

// Pending, Running, Succeeded or Failed.
std::string pod_phase(const PodRecord& pod);
// `before` is the last written status: unchanged conditions keep their times.
nlohmann::json pod_status(const PodRecord& pod, const nlohmann::json& before, Time now);

}  // namespace bsp::local
