// What proves that a job's pods have ended (kernel/pods/lost_pods.h), and what that needs to know of nodes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "operator/reconcile/kernel/pods/lost_pods.h"
#include "operator/reconcile/shell/job/job_parts.h"
#include "operator/reconcile/shell/job/observer.h"

namespace bsp::reconcile {

// Nodes that the cache doesn't have. A watch may have lost them, so only the API server's own word shows that there is none.
class AbsentNodes {
 public:
  explicit AbsentNodes(const JobParts& parts) : client_(parts.shell.client), calls_(parts.calls) {}

  // `cached`: of the Node in the cache; null: there is none. Then it is asked for, and kSilent until the answer, after which the job is
  // reconciled again.
  NodeState state(const std::string& name, const NodeState* cached);

 private:
  struct Asked {
    bool gone = false;
    SteadyTime at{};
  };
  struct Answers {  // shared with calls
    std::mutex mutex;
    std::map<std::string, Asked> by_node;
  };

  kube::Client& client_;
  const std::shared_ptr<JobCalls> calls_;
  const std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
};

class PodEnds {
 public:
  explicit PodEnds(const JobParts& parts) : scheduled_(parts.shell.options.pods.scheduled), absent_(parts) {}

  // Marks the pods that are lost, adds those that vanished, and notes which nodes of the job's ranks are gone. Pods that may not hear
  // the operator are no longer reachable.
  void judge(Cluster& cluster, const Sidecars& sidecars);

 private:
  const bool scheduled_;  // else one machine's own node removes a pod, and only once its containers have ended
  AbsentNodes absent_;
  VanishedPods vanished_;
  LostPods lost_;
};

}  // namespace bsp::reconcile
