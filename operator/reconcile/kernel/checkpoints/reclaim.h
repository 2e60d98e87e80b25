// What becomes of the checkpoint sets of a job that is deleted.
//
//   its pods are gone ──> a pod removes <storage>/<job uid>, and nothing else ──> the finalizer goes, and with the job that pod
//                          └ the storage refuses, or no pod can be made: it is tried again, and the condition SetsNotRemoved says so,
//                            until JobLimits::reclaim is over; then the job goes, and the event SetsLeft names what stays
//
// Only a pod can reach the storage: it mounts the claim, or the Secret of the bucket, and the operator neither. It runs no code of the
// user's.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

inline constexpr const char* kSetsLeft = "SetsLeft";
inline constexpr const char* kReclaimContainer = "reclaim";

// Nothing of the job runs any more, but for what runs on lost nodes: nothing starts again, so those needn't be waited for.
bool nothing_runs(const Observed& o);

std::string remover_name(const JobId& job);
nlohmann::json make_remover(const crds::BspJob& job, const PodOptions& options);
RemoverFacts remover_facts(const nlohmann::json& pod);

struct Reclaim {
  bool over = false;    // the job may go
  bool stores = false;  // the status has changed, and says more than before
  std::vector<Event> events = {};
  bool make_remover = false, delete_remover = false;
};
// Of a job that is being deleted and of which nothing runs. `limit`: JobLimits::reclaim.
Reclaim reclaim_sets(const Observed& o, Duration limit, crds::BspJobStatus& status);

}  // namespace bsp::reconcile
