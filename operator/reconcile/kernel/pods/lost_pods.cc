#include "operator/reconcile/kernel/pods/lost_pods.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json/fields.h"
#include "crds/fencing.h"
#include "operator/reconcile/capacity/resources.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

NodeState node_state(const nlohmann::json* node) {
  // Set by a person on a machine that is off; Kubernetes then detaches volumes and removes pods without asking its kubelet.
  constexpr const char* kOutOfService = "node.kubernetes.io/out-of-service";
  if (!node) return NodeState::kSilent;
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
  std::set<std::string> gone;  // pods on nodes that are
  for (auto& [name, pod] : pods) {
    const NodeState node = pod.deleting && !pod.node.empty() ? state(pod.node) : NodeState::kAnswers;
    pod.lost = node != NodeState::kAnswers;
    pod.abandoned = (pod.lost && (node == NodeState::kDead || ended_.contains(pod.uid))) ||
                    (!pod.lost && pod.vanished && pod.grace_over);
    if (node == NodeState::kGone) gone.insert(name);
    only_lost &= pod.lost || pod.abandoned;
    uids.insert(pod.uid);
  }
  std::erase_if(ended_, [&](const std::string& uid) { return !uids.contains(uid); });
  // A pod leaves the API when its kubelet has seen its containers end, so a pod that is cut off can't hear it any more.
  const bool one_has_ended = !epoch || std::ranges::any_of(epoch->members, [&](const wire::Member& member) {
    const auto pod = pods.find(member.pod);
    return pod == pods.end() || pod->second.abandoned;
  });
  const auto for_long = [&](bool holds, std::optional<Steady>& since) {
    if (!holds) since.reset();
    if (holds && !since) since = now;
    return since && now >= *since + fencing::kLimit + fencing::kMargin;
  };
  const bool all = for_long(!pods.empty() && only_lost && one_has_ended, one_ended_since_);
  const bool of_gone = for_long(!pods.empty() && only_lost, only_lost_since_);
  for (auto& [name, pod] : pods) {
    if (!all && !(of_gone && gone.contains(name))) continue;
    pod.abandoned = true;
    ended_.insert(pod.uid);
  }
}

// --- Pods whose objects are gone ---------------------------------------------------------------------------------------
namespace {
// A pod that this operator knows only from a status, which names one rank and its seat.
PodFacts unseen(std::string uid, std::string node, std::uint32_t rank, std::uint32_t local, std::string address = "") {
  PodFacts facts;
  facts.uid = std::move(uid);
  facts.node = std::move(node);
  facts.apps.resize(local + 1);
  facts.apps[local].rank = rank;
  facts.address = std::move(address);
  return facts;
}
}  // namespace

void VanishedPods::add(const crds::BspJobStatus& status, const std::function<bool(const std::string& pod)>& has_exited,
                       SteadyTime now, std::map<std::string, PodFacts>& pods) {
  note_seen(pods, has_exited, now);
  note_stored(status, pods, now);
  if (!std::exchange(looked_, true)) note_never_seen(status, pods, now);
  std::erase_if(missed_, [&](const auto& entry) {
    const bool over = has_exited(entry.first) || pods.contains(entry.first);  // or another has its name now
    if (over) ended_.insert(entry.second.facts.uid);
    return over;
  });
  for (const auto& [name, missed] : missed_) {
    PodFacts& facts = pods[name] = missed.facts;
    const Duration grace =
        from_seconds(static_cast<double>(std::min<std::uint64_t>(facts.grace_seconds, 1'000'000'000)));
    facts.deleting = facts.vanished = true;
    facts.grace_over = now > missed.since + grace + kKubeletHangs + fencing::kMargin;
  }
}

void VanishedPods::note_seen(const std::map<std::string, PodFacts>& pods,
                             const std::function<bool(const std::string& pod)>& has_exited, SteadyTime now) {
  std::erase_if(seen_, [&](auto& entry) {
    auto& [name, seen] = entry;
    const auto there = pods.find(name);
    if (there != pods.end() && there->second.uid == seen.facts.uid) return false;
    if (!seen.ended && !seen.facts.node.empty() && !has_exited(name)) miss(name, std::move(seen.facts), now);
    return true;
  });
  for (const auto& [name, facts] : pods) {
    Seen& seen = seen_[name];
    seen.ended |= facts.all_apps(&AppFacts::ended) || has_exited(name);
    if (seen.facts != facts) seen.facts = facts;  // of ten thousand pods hardly any has changed
  }
}

void VanishedPods::note_stored(const crds::BspJobStatus& status, const std::map<std::string, PodFacts>& pods,
                               SteadyTime now) {
  for (const crds::VanishedPod& pod : status.vanished) {
    if (pods.contains(pod.pod)) continue;
    PodFacts facts = unseen(pod.uid, pod.node, 0, 0);
    facts.grace_seconds = pod.grace_seconds;
    miss(pod.pod, std::move(facts), now);
  }
}

// What vanished while no operator looked. An attempt whose pods have all ended has no epoch any more, or none that counts.
void VanishedPods::note_never_seen(const crds::BspJobStatus& status, const std::map<std::string, PodFacts>& pods,
                                   SteadyTime now) {
  if (crds::is_finished(status.phase) || status.phase == crds::JobPhase::kPending || !status.epoch) return;
  for (const wire::Member& member : status.epoch->members) {
    if (pods.contains(member.pod)) continue;
    const bool placed = member.rank < status.ranks.size() && status.ranks[member.rank].pod == member.pod;
    miss(member.pod,
         unseen(member.pod_uid, placed ? status.ranks[member.rank].node : "", member.rank, member.seat, member.address),
         now);
  }
  const auto wave = stored_wave(status);
  if (!wave || !*wave || migrate::is_finished(**wave)) return;
  for (const migrate::Move& move : (*wave)->moves) {
    if (!move.target_uid.empty() && !pods.contains(move.target_pod))
      miss(move.target_pod,
           unseen(move.target_uid, move.target_node, move.rank, move.target_local, move.target_address), now);
    if (!move.source_uid.empty() && !pods.contains(move.source_pod))
      miss(move.source_pod,
           unseen(move.source_uid, move.source_node, move.rank, move.source_local, move.source_address), now);
  }
}

void VanishedPods::miss(const std::string& pod, PodFacts facts, SteadyTime now) {
  if (ended_.contains(facts.uid)) return;
  const auto missed = missed_.find(pod);
  if (missed == missed_.end())
    missed_.emplace(pod, Missed{std::move(facts), now});
  else if (missed->second.facts.uid == facts.uid && missed->second.facts.apps.size() < facts.apps.size())
    missed->second.facts.apps = std::move(facts.apps);  // another of its seats
}

void VanishedPods::settle(const std::map<std::string, PodFacts>& pods, SteadyTime now) {
  std::erase_if(missed_, [&](auto& entry) {
    const auto pod = pods.find(entry.first);
    if (pod == pods.end()) return false;
    if (pod->second.lost) entry.second.since = now;
    if (pod->second.abandoned) ended_.insert(entry.second.facts.uid);
    return pod->second.abandoned;
  });
}

std::vector<crds::VanishedPod> vanished_in(const std::map<std::string, PodFacts>& pods) {
  std::vector<crds::VanishedPod> vanished;
  for (const auto& [name, facts] : pods)
    if (facts.vanished && !facts.abandoned && vanished.size() < crds::kMostVanished)
      vanished.push_back({name, facts.uid, facts.node, facts.grace_seconds});
  return vanished;
}

}  // namespace bsp::reconcile
