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

  // Writes a budget of so many pods or, with 0, deletes it, again if that failed; also now and then, since it may have been deleted.
  void keep(const crds::BspJob& job, std::uint32_t pods);

 private:
  struct State {  // the call writes it, and may outlive the job
    std::mutex mutex;
    std::optional<std::uint32_t> pods;  // as it was last written, or could not be; nullopt: not by this operator yet
    SteadyTime again{}, lower{};        // when to write that again, and a lower number
  };
  static void write(kube::Client& client, const JobRef& job, const nlohmann::json& budget, std::uint32_t pods,
                    State& state);

  kube::Client& client_;
  const bool evictions_;  // there are any: in a cluster
  const JobRef job_ref_;
  const std::shared_ptr<JobCalls> calls_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace bsp::reconcile
