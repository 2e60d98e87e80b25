// Jobs that Kueue admits (kueue.sigs.k8s.io): those with the label of a LocalQueue. Kueue knows no BSPJob, so the operator makes a
// Workload for the job, and Kueue says in the Workload's status whether it may run:
//
//   no quota ─> Suspended, reason Queued ─ Admitted ─> Pending, and so on ─ Evicted ─> Suspended
//
// Once no pod of an evicted job is left, the quota is returned.
//
// A Workload has a pod set for each Set, with as many pods as the initial mapping starts there, so that the quota of a Set is that of the
// ResourceFlavor with the Set's node label. A rank that moves to another Set stays charged where it started: Kueue can't change the
// assignment of an admitted Workload. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

#include "crds/bspjob.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::reconcile {

struct Observed;

inline constexpr std::string_view kQueueLabel = "kueue.x-k8s.io/queue-name";  // on a BSPJob
inline constexpr const char* kWorkloadApi = "kueue.x-k8s.io/v1beta2";
// status.reason of a job that Kueue holds.
inline constexpr const char* kQueued = "Queued";

// Of a job with that label, where the operator is told to follow Kueue.
struct Queued {
  std::string queue;        // its LocalQueue
  nlohmann::json workload;  // as cached; null: none is made yet
};

// What of a Workload is to be written; null where nothing is.
struct WorkloadWrites {
  nlohmann::json create;  // the object
  nlohmann::json spec;    // fields of it
  nlohmann::json status;  // a merge patch, with the version that it was decided on
  bool operator==(const WorkloadWrites&) const = default;
};

std::string workload_name(const JobId& job);
bool admits(const Queued& queued);
std::string why_held(const Queued& queued);
// `pods_left`: what the job has taken is not free yet.
WorkloadWrites workload_writes(const Observed& o, bool pods_left);

}  // namespace bsp::reconcile
