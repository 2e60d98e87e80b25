// The PodDisruptionBudget that lets no pod of a job be evicted, so that its rank can move away instead.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "operator/reconcile/shell/job/job_parts.h"

namespace bsp::reconcile {

class EvictionGuard {
 public:
  explicit EvictionGuard(const JobParts& parts)
      : client_(parts.shell.client),
        evictions_(parts.shell.options.pods.scheduled),
        job_ref_(parts.job),
        calls_(parts.calls) {}

  // Creates the budget or deletes it; creates it again now and then, since it may have been deleted.
  void keep(const crds::BspJob& job, bool on);

 private:
  kube::Client& client_;
  const bool evictions_;  // there are any: in a cluster
  const JobRef job_ref_;
  const std::shared_ptr<JobCalls> calls_;
  std::optional<bool> on_;  // nullopt: not written by this operator yet
  std::chrono::steady_clock::time_point again_{};
};

}  // namespace bsp::reconcile
