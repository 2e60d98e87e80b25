#include "operator/reconcile/shell/pod_ends.h"

#include "base/core/log.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

namespace {
constexpr std::chrono::seconds kLookAgain{5};  // whether it is back, which a watch would show sooner
}

NodeState AbsentNodes::state(const std::string& name, const NodeState* cached) {
  const SteadyTime now = std::chrono::steady_clock::now();
  const std::lock_guard lock(answers_->mutex);
  if (cached) {
    answers_->by_node.erase(name);
    return *cached;
  }
  const auto known = answers_->by_node.find(name);
  if (known == answers_->by_node.end() || now > known->second.at + kLookAgain)
    calls_->once("look for node " + name, [&client = client_, answers = answers_, name] {
      const auto node = client.get({kNode, "", name});
      const bool gone = !node && node.error().code == ErrorCode::kNotFound;
      if (!node && !gone) log_warning("failed to look for a node", {{"node", name}, {"error", node.error().message}});
      const std::lock_guard answering(answers->mutex);
      answers->by_node[name] = {gone, std::chrono::steady_clock::now()};
    });
  return known != answers_->by_node.end() && known->second.gone ? NodeState::kGone : NodeState::kSilent;
}

void PodEnds::judge(Cluster& cluster, const Sidecars& sidecars) {
  const crds::BspJobStatus& status = cluster.job.status;
  const auto state = [&](const std::string& name) {
    const SeenNode* const node = cluster.nodes->find(name);
    return absent_.state(name, node ? &node->state : nullptr);
  };
  const auto has_exited = [&](const std::string& pod) { return sidecars.has_exited(pod); };
  if (scheduled_) vanished_.add(status, has_exited, cluster.steady, cluster.pods);
  lost_.judge(cluster.pods, state, status.epoch ? &*status.epoch : nullptr, cluster.steady);
  vanished_.settle(cluster.pods, cluster.steady);
  if (ranks_run(status))
    for (const crds::RankPlace& place : status.ranks)
      if (!place.node.empty() && !cluster.nodes->find(place.node) && state(place.node) == NodeState::kGone)
        cluster.gone_nodes.insert(place.node);
  for (const auto& [name, facts] : cluster.pods)  // its sidecar may yet say how the program ended
    if (facts.vanished && !facts.abandoned && !facts.address.empty())
      for (std::uint32_t local = 0; local < facts.apps.size(); ++local)
        cluster.reachable[{name, local}] = facts.address;
  std::erase_if(cluster.reachable, [&](const auto& entry) { return cluster.pods.at(entry.first.pod).lost; });
}

}  // namespace bsp::reconcile
