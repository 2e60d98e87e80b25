// Translates a v1 Pod to Podman's arguments. Pure: no file, no process; tests compare the arguments.
//
// Each container of the pod becomes one `podman run` that joins the pod's network namespace and mounts its volumes. The
// translation follows Kubernetes (seccomp Unconfined unless the pod sets a profile, command/args against
// ENTRYPOINT/CMD, $(VAR), fieldRef, native sidecars). A field that one machine can't support is an error naming the
// field or, if ignoring it changes nothing for the program (probes, affinity), a note.
//
// Specific to local mode: the node's share of a core (annotation migbsp.io/cpu) limits the pod's own containers but not
// the sidecar, with a period of 10 ms, so that a slow node is evenly slow instead of running in bursts.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::local {

enum class ContainerRole {
  kInit,     // runs to completion before the next one starts
  kSidecar,  // initContainer with restartPolicy Always: starts first, restarts when it dies
  kApp,
};

struct ContainerPlan {
  std::string name;         // in the pod
  std::string podman_name;  // in Podman's store
  ContainerRole role = ContainerRole::kApp;
  std::string image;
  std::string command;  // first word, for messages; empty: the image's default
  std::string log_path;
  std::string pid_path;
  std::vector<std::string> run_args;  // of `podman`: run -d …
};

enum class VolumeType { kTmpfs, kDirectory, kFiles, kHostPath, kImage };

struct VolumePlan {
  std::string name;
  VolumeType type = VolumeType::kDirectory;
  std::string path;              // on this machine
  std::string image;             // kImage: the image to mount
  std::uint64_t size_bytes = 0;  // kTmpfs; 0: the kernel's default
  std::uint32_t file_mode = 0644;
  std::map<std::string, std::string> files;  // kFiles: name -> content
  std::set<std::string> directories = {};    // in an emptyDir, that containers mount instead of the whole
};

enum class RestartPolicy { kNever, kOnFailure, kAlways };

struct PodPlan {
  std::string pod;
  std::string uid;
  std::vector<VolumePlan> volumes;
  std::vector<ContainerPlan> containers;  // in the order they start
  RestartPolicy restart = RestartPolicy::kAlways;
  std::vector<std::string> notes;  // fields that are accepted but ignored
};

struct PlanInput {
  std::string store_dir;     // <root>/<namespace>
  std::string network_path;  // pod's network namespace
  std::string pod_ip;
  double node_cpu = 0;  // share of a core; 0: no limit
  // Secret or ConfigMap of the pod's namespace, by kind and name.
  std::function<Result<nlohmann::json>(const std::string& kind, const std::string& name)> lookup;
};

// The directory with all of a pod's files.
std::string pod_dir(const std::string& store_dir, const std::string& pod, const std::string& uid);
// Kept after the pod is deleted: <store>/logs/<pod>/<container>.log, and pod.json with the pod's metadata.
std::string log_dir(const std::string& store_dir, const std::string& pod);
// The container's name in Podman's store, unique on the machine.
std::string podman_name(const std::string& store_dir, const std::string& pod, const std::string& container);
// The label on every container that names its store.
std::string store_label(const std::string& store_dir);

// The container of the pod's spec; null: there is none of that name.
const nlohmann::json& container_in(const nlohmann::json& pod, const std::string& name);
// Its own limit of CPU, as it is written; "": none.
std::string own_cpu_limit(const nlohmann::json& pod, const std::string& container);
// Arguments of podman run and update: the smaller of the node's share of CPU and the container's own limit.
Result<std::vector<std::string>> cpu_args(const nlohmann::json& container, ContainerRole role, double node_cpu,
                                          const std::string& path);
Result<PodPlan> plan_pod(const nlohmann::json& pod, const PlanInput& input);
// The time between SIGTERM and SIGKILL for its containers. Works for any pod, even an invalid one.
int grace_seconds(const nlohmann::json& pod);

}  // namespace bsp::local
