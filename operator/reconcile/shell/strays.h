// RankMigrations whose job does not exist. They move no job that is made later (is_older_than()), so they are answered, and
// of each namespace only the newest stay: whoever may make RankMigrations could fill the operator's memory with them.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/core/clock.h"
#include "operator/kube/cache.h"
#include "operator/kube/client.h"

namespace bsp::reconcile {

// Thread-safe.
class StrayMigrations {
 public:
  static constexpr std::size_t kMost = 100;          // of a namespace
  static constexpr std::size_t kDeletedAtOnce = 32;  // so that a worker is soon free again

  // `wait`: how long a job may still come into the cache after its RankMigrations.
  explicit StrayMigrations(kube::Client& client, Duration wait = std::chrono::seconds(60))
      : client_(client), wait_(wait) {}

  // The cache has no such job. Returns when to ask again; 0: once something changes.
  Duration answer(kube::Cache& cache, const std::string& job_key);
  void job_exists(const std::string& job_key) { forget(job_key); }

 private:
  // Created, name, uid, job_key; the oldest first.
  using Stray = std::tuple<Time, std::string, std::string, std::string>;
  struct OfJob {
    SteadyTime since{};  // first seen without it
    std::vector<Stray> strays;
  };
  void forget(const std::string& job_key);
  // Those that go, and since when the job is missed.
  std::pair<std::vector<Stray>, SteadyTime> note(const std::string& job_key, std::vector<Stray> strays);
  void remove(kube::Cache& cache, const std::vector<Stray>& strays);
  bool is_absent(const std::string& job_key);

  kube::Client& client_;
  const Duration wait_;
  std::mutex mutex_;                                 // of the two below
  std::map<std::string, OfJob> by_job_;              // by job_key
  std::map<std::string, std::set<Stray>> by_space_;  // by namespace
};

}  // namespace bsp::reconcile
