// The PodDisruptionBudget that lets no pod of a job be evicted, so that its rank can move away instead.
#pragma once

#include <memory>
#include <mutex>
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

  // Creates the budget or deletes it, again if that failed; creates it again now and then, since it may have been deleted.
  void keep(const crds::BspJob& job, bool on);

 private:
  struct State {  // the call writes it, and may outlive the job
    std::mutex mutex;
    std::optional<bool> on;  // as it was last written, or could not be; nullopt: not by this operator yet
    SteadyTime again{};      // when to write that again
  };
  static void write(kube::Client& client, const JobRef& job, const nlohmann::json& budget, bool on, State& state);

  kube::Client& client_;
  const bool evictions_;  // there are any: in a cluster
  const JobRef job_ref_;
  const std::shared_ptr<JobCalls> calls_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace bsp::reconcile
