// Checkpoint sets of jobs that are gone without them: their storage was away, or a lost node has stored more since. A sidecar of a job that
// makes sets in the same place removes them (sidecar/storage/storage.h, Orphans), by what only the operator knows:
//
//   whose they are    a mark of the operator's seed, the cluster and the namespace. So a cluster into which the seed was copied has another
//                     one, and what a job leaves by reclaimPolicy: Retain has none.
//   who needs them    the jobs of the namespace, and those from whose sets a job of any namespace goes on. If one of these statuses can't
//                     be read, nothing is removed.
//   since when        kOrphanAge. Until then somebody may still look at them, and a job that this operator has not heard of yet is young.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/kinds.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

inline constexpr std::chrono::hours kOrphanAge{7 * 24};
inline constexpr std::chrono::hours kLooksForOrphans{1};
// Of whom a request can tell. In a namespace with more jobs nothing is removed.
inline constexpr std::size_t kMostJobsThatStay = 1000;

// As the names of files have it.
Result<std::string> owner_of_sets(std::string_view seed, const std::string& cluster, const std::string& name_space);
// The uids of the jobs whose sets stay; nullopt: that isn't known. `jobs`: of all namespaces.
std::optional<std::vector<std::string>> jobs_that_stay(const std::vector<kube::Object>& jobs,
                                                       const std::string& name_space);

struct OrphanSearch {
  std::string owner;  // "": the job isn't marked
  bool retain = false;
  std::optional<std::vector<std::string>> stay = {};
};
// keepSets, with that.
migrate::Action with_search(const migrate::Action& keep_sets, OrphanSearch search);

}  // namespace bsp::reconcile
