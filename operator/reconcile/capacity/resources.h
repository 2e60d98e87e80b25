// How many ranks a node of a cluster can hold: what its kubelet gives to pods, less what other pods ask for, over what
// one rank asks for. The scheduler has the last word; this only keeps decisions from being made for nothing. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "crds/bspjob.h"

namespace bsp::reconcile {

// By name, what is counted besides CPU and memory: nvidia.com/gpu, hugepages-2Mi, ephemeral-storage, …; none is 0.
using Extended = std::map<std::string, std::int64_t>;

struct Resources {
  std::int64_t cpu = 0;     // thousandths of a core
  std::int64_t memory = 0;  // bytes
  std::int64_t pods = 0;
  Extended extended = {};

  Resources& operator+=(const Resources& o);
  Resources& operator-=(const Resources& o);
  bool operator==(const Resources&) const = default;
};
// Of what one pod or move asks for, in others' words: more counts as this, which no node has. That of 65,536 pods can be added.
inline constexpr std::int64_t kMostAsked = INT64_MAX >> 16;  // 128 TiB

// What the scheduler counts for a PodSpec: its containers and native sidecars, or its greatest init container if that
// is more; of CPU, memory and huge pages, what the pod as a whole requests instead. A limit without a request is one.
// `pods` is 1.
Resources requests_of(const nlohmann::json& pod_spec);
// Of a rank's pod: its template's, and those of each container that the operator adds to it, unless the template states
// the pod's as a whole. Where the template asks for no CPU there is none, since such a rank counts as a core.
Resources requests_of_rank(const nlohmann::json& pod_template, const nlohmann::json& sidecar_resources);
// Of a container's resources, the CPU in its `list` (limits, requests), thousandths of a core; 0: none.
std::int64_t cpu_in(const nlohmann::json& resources, const char* list);
// What it requests of CPU. A limit without a request is one.
std::int64_t cpu_requested(const nlohmann::json& resources);
// What a rank's program may use at most, thousandths of a core: its container's limit, else the pod's, else what they request, but no less
// than a core. And what the template's other containers request, up to the pod's limit.
std::int64_t cpu_used_by_rank(const nlohmann::json& pod_template);
// Node.status.allocatable; all zero if it does not say.
Resources allocatable_of(const nlohmann::json& node);
// Ranks that fit, so many in a pod. One that asks for no CPU counts as a whole core, but a node with any CPU left takes one.
std::uint32_t slots_of(Resources free, const Resources& rank, std::uint32_t ranks_per_pod = 1);

// What a rank asks for and no node has, were it empty: "no node of them has nvidia.com/gpu". "": one has all of it, or there is none.
std::string lacking(const Resources& rank, const std::vector<Resources>& nodes);

// The label of a job's Sets: `kept` if its ranks got their places by one, whatever labels nodes have got since; else `wanted`, or the
// cloud's own for node pools if `wanted` is the default and no node carries it.
std::string set_label(const std::string& wanted, const std::string& kept, const std::vector<nlohmann::json>& nodes);
// By which a job's ranks got their places; "" while they have none.
std::string kept_label(const crds::BspJob& job);
// Why its pods have to leave it soon, as "is cordoned": a drain, an autoscaler or the cloud says so. "": they need not.
// `pod_template`: of the pods; they leave a node with a NoExecute taint that it doesn't tolerate for good.
std::string leaving(const nlohmann::json& node, const nlohmann::json& pod_template);
// Its kubelet answers, as far as the cluster knows.
bool is_ready(const nlohmann::json& node);
// Of a template, all that takes_pods_of() reads.
nlohmann::json asked_of_nodes(const nlohmann::json& pod_template);
// Ready, not cordoned, without a taint that the template's pods do not tolerate, and not excluded by its nodeSelector, by
// the node affinity that it requires or by a platform that isn't the runtime's. A Node without a platform's label has been
// made by no kubelet, and says nothing about it.
bool takes_pods_of(const nlohmann::json& node, const nlohmann::json& pod_template);

}  // namespace bsp::reconcile
