// A job's NetworkPolicy.
#pragma once

#include <chrono>

#include "operator/reconcile/shell/job/job_parts.h"
#include "operator/reconcile/shell/trouble.h"

namespace bsp::reconcile {

class NetworkIsolation {
 public:
  explicit NetworkIsolation(const JobParts& parts)
      : client_(parts.shell.client), from_all_but_(parts.shell.options.isolate_from_all_but), job_ref_(parts.job) {}

  // Writes it before there are pods, and again now and then in case it was deleted or changed, but not during a wave. An
  // error only for a job that has no pods yet.
  Result<void> keep(const crds::BspJob& job);

 private:
  kube::Client& client_;
  const std::optional<OperatorPods> from_all_but_;  // nullopt: jobs get none
  const JobRef job_ref_;
  std::chrono::steady_clock::time_point again_{};
  Trouble not_isolated_;
};

}  // namespace bsp::reconcile
