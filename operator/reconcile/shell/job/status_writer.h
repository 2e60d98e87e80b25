// Writes a job's status: no more often than allowed, and only what has changed.
#pragma once

#include <chrono>

#include "base/core/backoff.h"
#include "operator/reconcile/shell/job/job_parts.h"

namespace bsp::reconcile {

class StatusWriter {
 public:
  explicit StatusWriter(const JobParts& parts)
      : client_(parts.shell.client),
        cache_(parts.shell.cache),
        job_(parts.job),
        progress_(parts.shell.options.progress) {}

  // True if it is stored; the cache has it then. False, and not even tried, for a while after it was refused.
  bool store(const crds::BspJob& job, const crds::BspJobStatus& status);
  // Until store() tries again, if it was refused.
  [[nodiscard]] Duration until_next_try() const;
  // A status that only shows progress may be written.
  [[nodiscard]] bool progress_is_due(crds::JobPhase phase) const;

 private:
  Result<kube::Object> write(const crds::BspJob& job, const crds::BspJobStatus& status);

  kube::Client& client_;
  kube::Cache& cache_;
  const JobRef job_;
  const Duration progress_;                                                    // between two such writes, at least
  std::chrono::steady_clock::time_point stored_{};                             // last
  std::size_t stored_bytes_ = 0;                                               // of the whole object then
  Backoff refusals_{std::chrono::milliseconds(100), std::chrono::seconds(5)};  // since it was stored
  std::chrono::steady_clock::time_point again_{};
};

}  // namespace bsp::reconcile
