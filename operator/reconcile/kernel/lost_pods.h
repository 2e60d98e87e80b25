// Pods that are being deleted on a node that does not answer, so nothing reports when their programs end: when they count
// as ended, and their ranks may be restarted.
//
//   the Node is gone, or tainted node.kubernetes.io/out-of-service   at once: a person vouches that nothing runs there
//   it is not ready                                                  fencing::kLimit + kMargin after the last moment
//                                                                    at which the job had a pod on another node;
//                                                                    never, if it had none
//
// Until then a sidecar there may hear a rank on another node, and its program runs on; afterwards it hears none, and ends
// its program within kLimit (sidecar/agent/fence.h). Only where every rank of a job is on such nodes do they all hear each
// other, as they do when merely the operator is away. The sidecars can't distinguish the two, so such a job is not restarted
// until the node is back or a person vouches for it, as Kubernetes does with the pods of a StatefulSet.
//
// Times are on this operator's steady clock, from when it saw the pod. Neither a node's clock nor that of the controller
// that marks nodes counts, and a new leader waits again. The operator does not talk to a pod that counts as lost.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "crds/wire.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

enum class NodeState { kAnswers, kSilent, kDead };
NodeState node_state(const nlohmann::json* node);  // null: there is none of that name

class LostPods {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  // Sets `lost` and `abandoned` of a job's pods. Call it in each reconcile, with all pods of the job and its committed
  // epoch (null: no program was let into one).
  void judge(std::map<std::string, PodFacts>& pods, const std::function<NodeState(const std::string& node)>& state,
             const wire::EpochPlan* epoch, Steady now);

 private:
  std::optional<Steady> only_lost_since_;  // and one rank's end is known
  std::set<std::string> ended_;            // uids: abandoned once, abandoned for good
};

}  // namespace bsp::reconcile
