#include "operator/reconcile/kernel/rebuild.h"

#include <algorithm>
#include <format>
#include <map>

#include "base/core/counted.h"
#include "operator/observe/snapshot.h"
#include "operator/reconcile/kernel/job.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {
namespace {

struct RunningSeat {
  Seat seat;
  std::uint32_t rank = 0;  // that it has, or was made for
  const PodFacts* pod = nullptr;
  const AppFacts* app = nullptr;
  const wire::RankStatus* said = nullptr;  // null: its sidecar does not answer

  [[nodiscard]] bool waits_for_rank() const {
    return said && said->phase == wire::RankPhase::kWaiting && said->epoch == 0 &&
           said->transfer.phase == wire::TransferPhase::kIdle;
  }
  [[nodiscard]] bool ended_well() const { return exited_well(app, said); }
  // In an open epoch, and nothing but an armed gate, which can still be cancelled, stands before its next superstep.
  [[nodiscard]] bool runs() const {
    return said && said->epoch > 0 && said->admitted_epoch == said->epoch && !said->gate_committed &&
           (said->phase == wire::RankPhase::kRunning || said->phase == wire::RankPhase::kAtGate ||
            said->phase == wire::RankPhase::kFinalized);
  }
};

std::vector<RunningSeat> seats_of(const Observed& o) {
  std::vector<RunningSeat> seats;
  for (const auto& [name, pod] : o.pods) {
    if (pod.deleting) continue;
    for (std::uint32_t local = 0; local < pod.apps.size(); ++local) {
      const Seat seat{name, local};
      const SidecarFacts* sidecar = o.sidecar(seat);
      const bool answers = sidecar && sidecar->answers();
      const wire::RankStatus* said = answers ? &*sidecar->status : nullptr;
      // Of several seats, one that a rank has left may have another by now.
      const bool knows = said && said->epoch > 0 && pod.apps.size() > 1;
      seats.push_back({seat, knows ? said->rank : pod.apps[local].rank, &pod, &pod.apps[local], said});
    }
  }
  return seats;
}

RebuildWithout spare_targets(const std::vector<RunningSeat>& seats) {
  std::map<std::uint32_t, int> of_rank;
  for (const RunningSeat& seat : seats) ++of_rank[seat.rank];
  std::map<std::string, bool> spare;  // by pod: no seat of it is needed
  for (const RunningSeat& seat : seats) {
    const bool waits = of_rank[seat.rank] > 1 && seat.waits_for_rank();
    const auto [pod, first] = spare.try_emplace(seat.seat.pod, waits);
    pod->second &= waits;
  }
  RebuildWithout without;
  for (const auto& [pod, is_spare] : spare)
    if (is_spare) without.pods.push_back(pod);
  return without;
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

crds::BspJobStatus status_from(const Observed& o, const std::vector<RunningSeat>& ranks) {
  crds::BspJobStatus status;
  status.start_time = o.now;
  status.set_label = o.job.spec.sets.label;
  status.wave = last_wave(o);
  count_moves(o, status.migrations);
  wire::EpochPlan epoch;
  epoch.sets = observe::set_names(o.job.spec.sets, o.nodes);
  for (const RunningSeat& rank : ranks) {
    const PodFacts& facts = *rank.pod;
    crds::RankPlace& place = status.ranks.emplace_back();
    place.rank = {rank.rank};
    place.set = facts.set;
    place.node = facts.node;
    place.pod = rank.seat.pod;
    place.local = rank.seat.local;
    place.generation = facts.generation + 1;
    add_member(epoch, place, facts);
    status.attempt = std::max(status.attempt, facts.attempt);
    if (facts.created != Time{}) status.start_time = std::min(status.start_time, facts.created);
    if (rank.said) epoch.epoch = std::max(epoch.epoch, rank.said->epoch);
  }
  status.runtime_image = ranks.empty() ? "" : ranks.front().pod->runtime_image;
  epoch.pmix_namespace = std::format("{}-e{}", o.job.metadata.uid, epoch.epoch);
  if (epoch.epoch > 0) status.epoch = std::move(epoch);
  status.epochs_used = epochs_seen(o);
  return status;
}

}  // namespace

std::uint64_t epochs_seen(const Observed& o) {
  std::uint64_t used = 0;
  for (const auto& [seat, sidecar] : o.sidecars)
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
  std::vector<RunningSeat> seats = seats_of(o);
  if (auto spare = spare_targets(seats); !spare.pods.empty()) return spare;
  // Beside ranks a seat may be free, whichever rank it was made for.
  std::erase_if(seats, [](const RunningSeat& seat) { return seat.pod->apps.size() > 1 && seat.waits_for_rank(); });
  std::ranges::sort(seats, {}, &RunningSeat::rank);
  const auto silent = std::ranges::find_if(
      seats, [](const RunningSeat& seat) { return !seat.said && !seat.app->ended && seat.pod->apps.size() > 1; });
  if (seats.size() != o.job.spec.ranks && silent != seats.end())
    return RebuildLater{std::format("pod {} does not answer", silent->seat.pod)};
  if (seats.size() != o.job.spec.ranks)
    return CannotRebuild{
        std::format("{} for {}", counted(seats.size(), "running seat"), counted(o.job.spec.ranks, "rank"))};
  for (std::uint32_t r = 0; r < seats.size(); ++r)
    if (seats[r].rank != r) return CannotRebuild{std::format("rank {} has no pod", r)};
  if (std::ranges::all_of(seats, &RunningSeat::ended_well)) {
    crds::BspJobStatus status = status_from(o, seats);
    status.phase = crds::JobPhase::kSucceeded;
    return status;
  }
  std::uint64_t epoch = 0;
  for (const RunningSeat& seat : seats) {
    const std::string name = name_of(seat.seat);
    if (seat.pod->lost || (seat.app->ended && !seat.ended_well()))
      return CannotRebuild{std::format("pod {} has ended or is lost", name)};
    if (seat.ended_well()) continue;
    if (!seat.said) return RebuildLater{std::format("pod {} does not answer", name)};
    if (!seat.runs())
      return RebuildLater{std::format("the program in pod {} is {}", name, wire::to_string(seat.said->phase))};
    if (epoch != 0 && seat.said->epoch != epoch) return RebuildLater{"the ranks are in different epochs"};
    epoch = seat.said->epoch;
  }
  crds::BspJobStatus status = status_from(o, seats);
  status.phase = crds::JobPhase::kRunning;
  return status;
}

}  // namespace bsp::reconcile
