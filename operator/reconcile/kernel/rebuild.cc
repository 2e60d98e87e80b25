#include "operator/reconcile/kernel/rebuild.h"

#include <algorithm>
#include <format>
#include <map>

#include "operator/observe/snapshot.h"
#include "operator/reconcile/kernel/job.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {
namespace {

struct RunningPod {
  std::string name;
  const PodFacts* facts = nullptr;
  const wire::RankStatus* said = nullptr;  // null: its sidecar does not answer

  [[nodiscard]] bool waits_for_rank() const {
    return said && said->phase == wire::RankPhase::kWaiting && said->epoch == 0 &&
           said->transfer.phase == wire::TransferPhase::kIdle;
  }
  [[nodiscard]] bool ended_well() const { return exited_well(facts, said); }
  // In an open epoch, and nothing but an armed gate, which can still be cancelled, stands before its next superstep.
  [[nodiscard]] bool runs() const {
    return said && said->epoch > 0 && said->admitted_epoch == said->epoch && !said->gate_committed &&
           (said->phase == wire::RankPhase::kRunning || said->phase == wire::RankPhase::kAtGate ||
            said->phase == wire::RankPhase::kFinalized);
  }
};

std::vector<RunningPod> pods_of(const Observed& o) {
  std::vector<RunningPod> pods;
  for (const auto& [name, facts] : o.pods) {
    if (facts.deleting) continue;
    const auto sidecar = o.sidecars.find(name);
    const bool answers = sidecar != o.sidecars.end() && sidecar->second.answers();
    pods.push_back({name, &facts, answers ? &*sidecar->second.status : nullptr});
  }
  return pods;
}

RebuildWithout spare_targets(const std::vector<RunningPod>& pods) {
  std::map<std::uint32_t, int> of_rank;
  for (const RunningPod& pod : pods) ++of_rank[pod.facts->rank];
  RebuildWithout spare;
  for (const RunningPod& pod : pods)
    if (of_rank[pod.facts->rank] > 1 && pod.waits_for_rank()) spare.pods.push_back(pod.name);
  return spare;
}

std::uint32_t last_wave(const Observed& o) {
  std::uint32_t wave = 0;
  for (const crds::RankMigration& m : o.migrations) wave = std::max({wave, m.spec.wave, m.status.wave});
  return wave;
}

void count_moves(const Observed& o, crds::MigrationCounters& moves) {
  moves.waves = last_wave(o);
  for (const crds::RankMigration& m : o.migrations) {
    moves.succeeded += m.status.phase == crds::MigrationPhase::kSucceeded;
    moves.rolled_back += m.status.phase == crds::MigrationPhase::kRolledBack;
    moves.failed += m.status.phase == crds::MigrationPhase::kFailed;
  }
}

crds::BspJobStatus status_from(const Observed& o, const std::vector<RunningPod>& ranks) {
  crds::BspJobStatus status;
  status.start_time = o.now;
  status.set_label = o.job.spec.sets.label;
  status.wave = last_wave(o);
  count_moves(o, status.migrations);
  wire::EpochPlan epoch;
  epoch.sets = observe::set_names(o.job.spec.sets, o.nodes);
  for (const RunningPod& pod : ranks) {
    const PodFacts& facts = *pod.facts;
    add_member(epoch, facts.rank, pod.name, facts.set, facts);
    crds::RankPlace& place = status.ranks.emplace_back();
    place.rank = {facts.rank};
    place.set = facts.set;
    place.node = facts.node;
    place.pod = pod.name;
    place.generation = facts.generation + 1;
    status.attempt = std::max(status.attempt, facts.attempt);
    if (facts.created != Time{}) status.start_time = std::min(status.start_time, facts.created);
    if (pod.said) epoch.epoch = std::max(epoch.epoch, pod.said->epoch);
  }
  status.runtime_image = ranks.empty() ? "" : ranks.front().facts->runtime_image;
  epoch.pmix_namespace = std::format("{}-e{}", o.job.metadata.uid, epoch.epoch);
  if (epoch.epoch > 0) status.epoch = std::move(epoch);
  status.epochs_used = epochs_seen(o);
  return status;
}

}  // namespace

std::uint64_t epochs_seen(const Observed& o) {
  std::uint64_t used = 0;
  for (const auto& [name, sidecar] : o.sidecars)
    if (sidecar.status) {
      const std::uint64_t highest = std::max(sidecar.status->epoch, sidecar.status->prepared_epoch);
      if (highest > 0) used = std::max(used, highest + 1);
    }
  return used;
}

bool is_blank(const crds::BspJobStatus& status) {
  return status.phase == crds::JobPhase::kPending && status.ranks.empty() && !status.epoch && status.epochs_used == 0 &&
         status.attempt == 0;
}

Rebuilt rebuild_status(const Observed& o) {
  std::vector<RunningPod> pods = pods_of(o);
  if (auto spare = spare_targets(pods); !spare.pods.empty()) return spare;
  std::ranges::sort(pods, {}, [](const RunningPod& pod) { return pod.facts->rank; });
  if (pods.size() != o.job.spec.ranks)
    return CannotRebuild{std::format("{} pods hold {} ranks", pods.size(), o.job.spec.ranks)};
  for (std::uint32_t r = 0; r < pods.size(); ++r)
    if (pods[r].facts->rank != r) return CannotRebuild{std::format("rank {} has no pod", r)};
  if (std::ranges::all_of(pods, &RunningPod::ended_well)) {
    crds::BspJobStatus status = status_from(o, pods);
    status.phase = crds::JobPhase::kSucceeded;
    return status;
  }
  std::uint64_t epoch = 0;
  for (const RunningPod& pod : pods) {
    if (pod.facts->lost || (pod.facts->app_ended && !pod.ended_well()))
      return CannotRebuild{std::format("pod {} has ended or is lost", pod.name)};
    if (pod.ended_well()) continue;
    if (!pod.said) return RebuildLater{std::format("pod {} does not answer", pod.name)};
    if (!pod.runs())
      return RebuildLater{std::format("the program in pod {} is {}", pod.name, wire::to_string(pod.said->phase))};
    if (epoch != 0 && pod.said->epoch != epoch) return RebuildLater{"the ranks are in different epochs"};
    epoch = pod.said->epoch;
  }
  crds::BspJobStatus status = status_from(o, pods);
  status.phase = crds::JobPhase::kRunning;
  return status;
}

}  // namespace bsp::reconcile
