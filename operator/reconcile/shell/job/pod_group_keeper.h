// The PodGroup of a job's start (kernel/start/gang.h), created off the worker and never read.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "operator/reconcile/kernel/start/gang.h"
#include "operator/reconcile/shell/job/job_parts.h"

namespace bsp::reconcile {

// In the newest version that the API server serves, which it is asked again each time: it may be upgraded meanwhile. The error is that of
// the newest if it serves none; no answer is an error, and no reason to write an older one.
Result<kube::Object> create_pod_group(kube::Client& client, kube::Object group);

class PodGroupKeeper {
 public:
  explicit PodGroupKeeper(const JobParts& parts) : client_(parts.shell.client), calls_(parts.calls) {}

  [[nodiscard]] PodGroupFacts known() const;
  // Creates it, and again now and then as long as it is needed, since it may have been deleted. null: it is not needed, and
  // nothing is known of it when it is again.
  void keep(const nlohmann::json& group);

 private:
  struct State {  // the call writes it, and may outlive the job
    std::mutex mutex;
    PodGroupFacts facts;
    SteadyTime again{};
  };
  static void create(kube::Client& client, const nlohmann::json& group, State& state);

  kube::Client& client_;
  const std::shared_ptr<JobCalls> calls_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace bsp::reconcile
