// A job's NetworkPolicy.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "operator/reconcile/shell/job/job_parts.h"
#include "operator/reconcile/shell/trouble.h"

namespace bsp::reconcile {

class NetworkIsolation {
 public:
  explicit NetworkIsolation(const JobParts& parts)
      : client_(parts.shell.client),
        from_all_but_(parts.shell.options.isolate_from_all_but),
        job_ref_(parts.job),
        calls_(parts.calls) {}

  // Writes it before there are pods, and again now and then in case it was deleted or changed. An error only for a job that
  // has no pods yet; later it is retried, and nothing waits for it.
  Result<void> keep(const crds::BspJob& job);

 private:
  struct State {  // a call writes it, and may outlive the job
    std::mutex mutex;
    SteadyTime again{};
    Trouble not_isolated;
  };
  static Result<void> write(kube::Client& client, const nlohmann::json& policy, State& state);

  kube::Client& client_;
  const std::optional<OperatorPods> from_all_but_;  // nullopt: jobs get none
  const JobRef job_ref_;
  const std::shared_ptr<JobCalls> calls_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace bsp::reconcile
