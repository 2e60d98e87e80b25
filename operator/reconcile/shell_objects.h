// Which objects the shell watches, how it finds them, what of them it keeps, and what they add up to.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "operator/kinds.h"
#include "operator/kube/cache.h"
#include "operator/reconcile/room.h"

namespace bsp::reconcile {

// The BSPJob that controls an object, by its owner reference: a label may be on anybody's. Both empty: none does.
struct JobOwner {
  std::string name, uid;
};
JobOwner owner_of(const kube::Object& object);

// "<namespace>/<name>" of the BSPJob that an object is or belongs to; "" if to none.
std::string job_key(const std::string& name_space, const std::string& name);
std::string job_key_of(const kube::Kind& kind, const kube::Object& object);

// The cache's index of pods and RankMigrations by job_key.
inline constexpr const char* kByJob = "job";
// All without what nobody here reads.
kube::CacheOptions watched_objects(const std::string& name_space);
// Drops that from an object of these kinds. A client that does so while it watches holds less on the way into the cache.
void trim_watched(const kube::Kind& kind, kube::Object& object);

// All that ran in it has ended; it takes no room on its node any more.
bool has_ended(const kube::Object& pod);

// What the pods that have a node and have not ended ask for there, and whose they are. Thread-safe.
class NodeUsage {
 public:
  void change(const kube::Object* before, const kube::Object* now);
  // Of all pods but this job's.
  [[nodiscard]] Resources of_others(const std::string& node, const std::string& job) const;
  [[nodiscard]] Resources of_all(const std::string& node) const;
  // A target pod of a job that is counted.
  [[nodiscard]] bool has_target(const std::string& name_space, const std::string& pod) const;

 private:
  struct OnNode {
    Resources all;
    std::map<std::string, Resources> of_job;  // by job_key
  };
  mutable std::mutex mutex_;
  std::map<std::string, OnNode> nodes_;
  std::set<std::string> targets_;  // "<namespace>/<name>"
};

// What a BSPJob's status says in figures, for metrics.
struct JobFigures {
  std::string name_space, name, phase;
  std::int64_t ranks = 0;
  std::int64_t superstep = 0;
  std::int64_t moves = 0;  // succeeded
  std::int64_t restarts = 0;
  double imbalance = 0;
  double gain_seconds = 0;  // realised
};
JobFigures job_figures(const kube::Object& job);

}  // namespace bsp::reconcile
