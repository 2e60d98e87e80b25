#include "operator/reconcile/kernel/stored.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>
#include <set>

#include "base/core/counted.h"
#include "base/json/fields.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {
namespace {

std::unexpected<Error> corrupt(std::string_view field, std::string_view what) {
  return fail(ErrorCode::kInvalid,
              std::format("status.{}: {}; the operator doesn't write such a status: restore it, or delete the job and "
                          "create it again",
                          field, what));
}

Result<void> check_ranks(const crds::BspJob& job) {
  const auto& ranks = job.status.ranks;
  const bool placed = has_places(job.status.phase);
  if (ranks.size() != job.spec.ranks && (placed || !ranks.empty()))
    return corrupt("ranks", std::format("has {} of {}", ranks.size(), counted(job.spec.ranks, "rank")));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].rank.value != i) return corrupt(std::format("ranks[{}].rank", i), "is another rank's place");
    if (ranks[i].pod.empty() || ranks[i].generation == 0)
      return corrupt(std::format("ranks[{}]", i), "names no pod that was made");
    if (is_running(job.status.phase) && ranks[i].set.empty()) return corrupt(std::format("ranks[{}]", i), "has no Set");
  }
  return {};
}

Result<void> check_epoch(const crds::BspJob& job) {
  const bool runs = is_running(job.status.phase);
  if (!job.status.epoch) return runs ? corrupt("epoch", "is not there, but the job runs") : Result<void>();
  const wire::EpochPlan& epoch = *job.status.epoch;
  if (epoch.members.size() != job.spec.ranks)
    return corrupt("epoch.members", std::format("has {} of {}", epoch.members.size(), counted(job.spec.ranks, "rank")));
  for (std::size_t i = 0; i < epoch.members.size(); ++i) {
    const wire::Member& member = epoch.members[i];
    const std::string at = std::format("epoch.members[{}]", i);
    if (member.rank != i) return corrupt(at + ".rank", "is another rank");
    if (member.set >= epoch.sets.size()) return corrupt(at + ".set", "is none of epoch.sets");
    if (!runs) continue;
    if (member.pod_uid.empty() || member.address.empty()) return corrupt(at, "lacks its pod's uid or address");
    if (i < job.status.ranks.size() && seat_of(member) != job.status.ranks[i].seat())
      return corrupt(at + ".pod",
                     std::format("is not {}, which ranks[{}] names", name_of(job.status.ranks[i].seat()), i));
  }
  if (job.status.epochs_used <= epoch.epoch) return corrupt("epochsUsed", "is not above the epoch's number");
  return {};
}

Result<void> check_wave(const crds::BspJob& job) {
  const auto stored = stored_wave(job.status);
  if (!stored) return corrupt("waveState", stored.error().message);
  const bool moves = job.status.phase == crds::JobPhase::kMigrating;
  if (!*stored) return moves ? corrupt("waveState", "is not there, but ranks move") : Result<void>();
  const migrate::Wave& wave = **stored;
  if (wave.number > job.status.wave) return corrupt("wave", "is below the number of the wave in waveState");
  if (wave.times.empty()) return corrupt("waveState.times", "is empty");
  if (wave.lost_rank && *wave.lost_rank >= job.spec.ranks)
    return corrupt("waveState.lostRank", "is no rank of this job");
  // What the migration's state machine relies on.
  if (wave.phase == migrate::Phase::kResuming && (!job.status.epoch || job.status.epoch->epoch != wave.next_epoch))
    return corrupt("waveState.phase", "is Resuming, but nextEpoch is not status.epoch");
  if (wave.phase == migrate::Phase::kPausing && wave.gate.state == migrate::GateState::kDropping)
    return corrupt("waveState.gate.state", "is Dropping, but nothing is rolled back");
  std::set<std::uint32_t> moved;
  for (std::size_t i = 0; i < wave.moves.size(); ++i) {
    const std::string at = std::format("waveState.moves[{}]", i);
    if (wave.moves[i].rank >= job.spec.ranks) return corrupt(at + ".rank", "is no rank of this job");
    if (!moved.insert(wave.moves[i].rank).second) return corrupt(at + ".rank", "moves twice");
    if (job.status.epoch && wave.moves[i].target_set >= job.status.epoch->sets.size())
      return corrupt(at + ".targetSet", "is none of epoch.sets");
  }
  return {};
}

}  // namespace

bool never_begun(const nlohmann::json& object) {
  const nlohmann::json& status = part_at(object, "status");
  if (status.is_null()) return true;
  if (!status.is_object()) return false;
  const bool failed = text_at(status, "phase") == crds::to_string(crds::JobPhase::kFailed);
  if (failed && text_at(status, "reason") == kInvalidJob) return true;
  return std::ranges::all_of(status.items(), [](const auto& field) { return field.key() == "conditions"; });
}

Result<void> check_stored(const crds::BspJob& job) {
  BSP_CHECK_OK(check_ranks(job));
  BSP_CHECK_OK(check_epoch(job));
  return check_wave(job);
}

}  // namespace bsp::reconcile
