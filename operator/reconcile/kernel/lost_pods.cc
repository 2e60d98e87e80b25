#include "operator/reconcile/kernel/lost_pods.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "crds/fencing.h"
#include "operator/reconcile/capacity/resources.h"

namespace bsp::reconcile {

NodeState node_state(const nlohmann::json* node) {
  // Set by a person on a machine that is off; Kubernetes then detaches volumes and removes pods without asking its kubelet.
  constexpr const char* kOutOfService = "node.kubernetes.io/out-of-service";
  if (!node) return NodeState::kDead;
  if (is_ready(*node)) return NodeState::kAnswers;
  for (const nlohmann::json& taint : part_at(part_at(*node, "spec"), "taints"))
    if (text_at(taint, "key") == kOutOfService) return NodeState::kDead;
  return NodeState::kSilent;
}

void LostPods::judge(std::map<std::string, PodFacts>& pods,
                     const std::function<NodeState(const std::string& node)>& state, const wire::EpochPlan* epoch,
                     Steady now) {
  std::set<std::string> uids;
  bool only_lost = true;
  for (auto& [name, pod] : pods) {
    const NodeState node = pod.deleting && !pod.node.empty() ? state(pod.node) : NodeState::kAnswers;
    pod.lost = node != NodeState::kAnswers;
    pod.abandoned = pod.lost && (node == NodeState::kDead || ended_.contains(pod.uid));
    only_lost &= pod.lost;
    uids.insert(pod.uid);
  }
  std::erase_if(ended_, [&](const std::string& uid) { return !uids.contains(uid); });
  // A pod leaves the API when its kubelet has seen its containers end, so a pod that is cut off can't hear it any more.
  const bool one_has_ended = !epoch || std::ranges::any_of(epoch->members, [&](const wire::Member& member) {
    const auto pod = pods.find(member.pod);
    return pod == pods.end() || pod->second.abandoned;
  });
  if (pods.empty() || !only_lost || !one_has_ended) {
    only_lost_since_.reset();
    return;
  }
  if (!only_lost_since_) only_lost_since_ = now;
  if (now < *only_lost_since_ + fencing::kLimit + fencing::kMargin) return;
  for (auto& [name, pod] : pods) {
    pod.abandoned = true;
    ended_.insert(pod.uid);
  }
}

}  // namespace bsp::reconcile
