#include "operator/reconcile/kernel/drain.h"

#include <algorithm>
#include <chrono>
#include <format>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/core/first_few.h"
#include "crds/names.h"
#include "operator/reconcile/kernel/pods/pods.h"
#include "operator/reconcile/kernel/rescheduling/failed_moves.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

// A move that was rolled back is retried after a while, when its cause may have passed.
bool was_rolled_back_recently(const Observed& o, RankId rank) {
  constexpr std::chrono::seconds kPause{15};
  return std::ranges::any_of(o.migrations, [&](const crds::RankMigration& m) {
    return m.spec.rank == rank && m.status.phase == crds::MigrationPhase::kRolledBack &&
           std::chrono::abs(o.now - m.status.completion_time) < kPause;
  });
}

}  // namespace

std::vector<MoveRequest> ranks_to_move_away(const Observed& o, const std::vector<MoveRequest>& asked) {
  std::vector<MoveRequest> requests;
  if (o.leaving.empty()) return requests;
  const FailedMoves failed(o);
  for (const crds::RankPlace& place : o.job.status.ranks) {
    if (!o.leaving.contains(place.node) || was_rolled_back_recently(o, place.rank)) continue;
    if (!failed.just_failed(place.rank.value).empty()) continue;  // the other ranks of its wave go first
    if (std::ranges::none_of(asked, [&](const MoveRequest& r) { return r.rank == place.rank.value; }))
      requests.push_back({.migration = "", .rank = place.rank.value, .set = place.set, .node = "", .away = true});
  }
  return requests;
}

bool show_drain(const Observed& o, const std::string& stuck, crds::BspJobStatus& status) {
  std::map<std::string_view, FirstFew> ranks_on;  // by node
  for (const crds::RankPlace& place : status.ranks)
    if (o.leaving.contains(place.node)) ranks_on[place.node].add(std::to_string(place.rank.value));
  FirstFew nodes("; ");
  for (const auto& [node, ranks] : ranks_on)
    nodes.add(
        std::format("node {} {}, and {} must leave it", node, o.leaving.at(std::string(node)), ranks.text("rank")));
  const bool on = !nodes.empty();
  if (!on && !is_on(status, kDraining)) return false;
  const char* reason = !on ? "NodesStay" : stuck.empty() ? "MovingAway" : "NowhereToGo";
  const std::uint64_t seconds = o.job.spec.run_policy.drain_timeout_seconds;
  std::string message = !on             ? "no rank has to leave its node"
                        : stuck.empty() ? nodes.text()
                                        : std::format(
                                              "{}; {}; {} s after the drain began its pod may be evicted "
                                              "(spec.runPolicy.drainTimeoutSeconds), and the job restarts",
                                              nodes.text(), stuck, seconds);
  if (on) message = with_remedy(kDraining, std::move(message));
  const crds::Condition* before = crds::find_condition(status.conditions, kDraining);
  if (before && before->reason == reason && before->message == message) return false;
  turn_condition(o, status, kDraining, on, reason, std::move(message));
  return true;
}

std::uint32_t pods_to_keep(const Observed& o, crds::JobPhase phase) {
  if (!has_places(phase) ||
      to_seconds(o.draining_for) >= static_cast<double>(o.job.spec.run_policy.drain_timeout_seconds))
    return 0;
  // More than a job ever has, with a target for each rank: none that becomes ready makes room for an eviction.
  const std::uint64_t more_than_all = std::min<std::uint64_t>(2 * std::uint64_t{o.job.spec.ranks} + 1, INT32_MAX);
  if (phase != crds::JobPhase::kRunning || !o.being_made.empty()) return static_cast<std::uint32_t>(more_than_all);
  // While nothing moves, those that run, so that the budget is met: people are warned of one that isn't for long.
  const auto run = std::ranges::count_if(o.pods, [](const auto& entry) {
    const PodFacts& pod = entry.second;
    return !pod.deleting && !pod.vanished && !pod.all_apps(&AppFacts::ended);
  });
  return static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(run, 1));
}

// maxUnavailable: 0 would say it best, but needs a scale subresource, whose replicas are pods and not ranks.
json make_disruption_budget(const crds::BspJob& job, std::uint32_t pods) {
  return {{"apiVersion", "policy/v1"},
          {"kind", "PodDisruptionBudget"},
          {"metadata", metadata_of_object(job, name_of_job({job.metadata.name, job.metadata.uid}))},
          {"spec",
           {{"minAvailable", pods},
            {"unhealthyPodEvictionPolicy", "AlwaysAllow"},  // a pod that doesn't run holds up no drain
            {"selector", {{"matchLabels", {{std::string(names::kLabelJob), job.metadata.name}}}}}}}};
}

}  // namespace bsp::reconcile
