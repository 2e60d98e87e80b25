// v1 Pod -> what to ask Podman for. Pure: no file, no process; tests compare the arguments.
//
// Each container of the pod becomes one `podman run` that joins the pod's network namespace and sees
// its volumes. What Kubernetes defines is done as Kubernetes does it (seccomp Unconfined unless a
// profile is asked for, command/args against ENTRYPOINT/CMD, $(VAR), fieldRef, native sidecars); what
// can't be done on one machine is an error naming the field, or, where leaving it out changes nothing
// for the program (probes, affinity), a note. An own thing of local mode: the node's share of a core
// (annotation migbsp.io/cpu) limits the pod's own containers and not the sidecar, with a period of
// 10 ms, so that a slow node is slow evenly and does not run and stop.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::local {

enum class ContainerRole {
  kInit,     // runs to its end before the next starts
  kSidecar,  // initContainer with restartPolicy Always: started first, restarted when it dies
  kApp,
};

struct ContainerPlan {
  std::string name;         // in the pod
  std::string podman_name;  // in Podman's store
  ContainerRole role = ContainerRole::kApp;
  std::string image;
  std::string command;  // first word, for messages; empty: the image's own
  std::string log_path;
  std::string pid_path;
  std::vector<std::string> run_args;  // of `podman`: run -d …
};

enum class VolumeType { kTmpfs, kDirectory, kFiles, kHostPath, kImage };

struct VolumePlan {
  std::string name;
  VolumeType type = VolumeType::kDirectory;
  std::string path;              // on this machine
  std::string image;             // kImage: what is mounted there
  std::uint64_t size_bytes = 0;  // kTmpfs; 0: the kernel's default
  std::uint32_t file_mode = 0644;
  std::map<std::string, std::string> files;  // kFiles: name -> content
};

enum class RestartPolicy { kNever, kOnFailure, kAlways };

struct PodPlan {
  std::string pod;
  std::string uid;
  std::vector<VolumePlan> volumes;
  std::vector<ContainerPlan> containers;  // in the order they start
  RestartPolicy restart = RestartPolicy::kAlways;
  std::vector<std::string> notes;  // fields that are accepted and not acted on
};

struct PlanInput {
  std::string store_dir;     // <root>/<namespace>
  std::string network_path;  // pod's network namespace
  std::string pod_ip;
  double node_cpu = 0;  // share of a core; 0: no limit
  // Secret or ConfigMap of the pod's namespace, by kind and name.
  std::function<Result<nlohmann::json>(const std::string& kind, const std::string& name)> lookup;
};

// Everything of one pod lies under here.
std::string pod_dir(const std::string& store_dir, const std::string& pod, const std::string& uid);
// Kept when the pod goes: <store>/logs/<pod>/<container>.log, and pod.json with the pod's metadata.
std::string log_dir(const std::string& store_dir, const std::string& pod);
// The container's name in Podman's store, unique on the machine.
std::string podman_name(const std::string& store_dir, const std::string& pod, const std::string& container);
// Labels that every container carries: whose it is.
std::string store_label(const std::string& store_dir);

Result<PodPlan> plan_pod(const nlohmann::json& pod, const PlanInput& input);
// What its containers get between SIGTERM and SIGKILL. For any pod, also one that could not be planned.
int grace_seconds(const nlohmann::json& pod);

}  // namespace bsp::local
