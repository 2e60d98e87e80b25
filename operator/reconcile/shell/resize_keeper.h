// Pods that get more CPU where they are, or less again: the API server is asked off the worker (kernel/resize/resize.h).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/core/backoff.h"
#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/shell/job/job_parts.h"

namespace bsp::reconcile {

// The strategic merge patch of the pod's subresource.
nlohmann::json patch_of(const PodResize& resize);

class ResizeKeeper {
 public:
  explicit ResizeKeeper(const JobParts& parts)
      : client_(parts.shell.client), cache_(parts.shell.cache), job_(parts.job), calls_(parts.calls) {}

  // Ask before the pods are read: one whose call has ended is in the cache by then.
  [[nodiscard]] std::set<std::string> being_resized() const;
  void add_refused(Observed& o) const;
  // One that is refused is asked for again after a while, as long as it is among these.
  void ask(const std::vector<PodResize>& resizes);

 private:
  struct Refused {
    Error error;
    SteadyTime again{};  // not tried before that
    Backoff tries{std::chrono::milliseconds(500), std::chrono::seconds(15)};
  };
  struct State {  // the call writes it, and may outlive the job
    std::mutex mutex;
    std::set<std::string> under_way;
    std::map<std::string, Refused> refused;  // by pod
    void end(const std::string& pod, const Result<kube::Object>& answer);
  };

  kube::Client& client_;
  kube::Cache& cache_;
  const JobRef job_;
  const std::shared_ptr<JobCalls> calls_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace bsp::reconcile
