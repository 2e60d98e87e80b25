// Which objects the shell watches, how it finds them, and what of them it keeps.
#pragma once

#include <cstdint>
#include <string>

#include "operator/kube/cache.h"
#include "operator/reconcile/capacity/stores/owner.h"
#include "operator/reconcile/capacity/stores/usage.h"

namespace bsp::reconcile {

// The cache's index of pods and RankMigrations by job_key.
inline constexpr const char* kByJob = "job";
// All without what is not read here.
kube::CacheOptions watched_objects(const std::string& name_space, bool kueue = false);
// Drops that from an object of these kinds. A client that does so while it watches holds less on the way into the cache.
void trim_watched(const kube::Kind& kind, kube::Object& object);

// What a BSPJob's status says, for metrics.
struct JobMetrics {
  std::string name_space, name, phase;
  std::int64_t ranks = 0;
  std::int64_t superstep = 0;
  std::int64_t moves = 0;  // succeeded
  std::int64_t restarts = 0;
  double gain_seconds = 0;  // realised
};
JobMetrics job_metrics(const kube::Object& job);

}  // namespace bsp::reconcile
