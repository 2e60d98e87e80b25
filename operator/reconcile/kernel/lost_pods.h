// Pods that are being deleted on a node that does not answer, so that nobody says when their programs end: when they
// count as ended all the same, and their ranks may start anew.
//
//   the Node is gone, or tainted node.kubernetes.io/out-of-service   at once: somebody vouches that nothing runs there
//   it is not ready                                                  fencing::kLimit + kMargin after the last moment
//                                                                    at which a pod of the job was left elsewhere;
//                                                                    never, if none was
//
// Until then a sidecar there may hear a rank that is left elsewhere, and its program runs on; afterwards it hears
// nobody, and ends its program within kLimit (sidecar/agent/fence.h). Only a job of which every rank is on such nodes hears
// all of itself, as it does when merely the operator is away: nobody can tell the two apart from in there, so it is not
// started anew until the node is back or somebody vouches for it, as Kubernetes itself does with the pods of a
// StatefulSet.
//
// Times are this operator's own: of its steady clock, from when it saw it. Neither a node's clock nor the one of the
// controller that marks nodes counts, and another operator waits once more. A pod that counts as lost is not spoken to.
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

  // Sets `lost` and `abandoned` of a job's pods. To be called at each look, with all pods of the job and its committed
  // epoch (null: no program was let into one).
  void judge(std::map<std::string, PodFacts>& pods, const std::function<NodeState(const std::string& node)>& state,
             const wire::EpochPlan* epoch, Steady now);

 private:
  std::optional<Steady> only_lost_since_;  // and one rank's end is known
  std::set<std::string> ended_;            // uids: abandoned once, abandoned for ever
};

}  // namespace bsp::reconcile
