#include "operator/migrate/wave.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>
#include <set>

#include "base/core/counted.h"
#include "crds/fields.h"
#include "crds/reflect.h"

namespace bsp::migrate {

Time Wave::entered(Phase p) const {
  for (auto it = times.rbegin(); it != times.rend(); ++it)
    if (it->phase == p) return it->time;
  return Time{};
}

wire::Token token_of(const Wave& wave) {
  const bool back = wave.phase == Phase::kRollingBack || wave.phase == Phase::kRolledBack;
  return {.wave = wave.number, .epoch = back ? wave.rollback_epoch : wave.next_epoch, .attempt = wave.gate.attempt};
}

bool is_valid_transition(Phase from, Phase to) {
  // Any phase before the commit may fall back or fail; kFailed means that a rank's process is gone.
  const bool gives_up = to == Phase::kRollingBack || to == Phase::kFailed;
  switch (from) {
    case Phase::kPending:
      return to == Phase::kPreparing || to == Phase::kFailed;
    case Phase::kPreparing:
      return to == Phase::kPausing || gives_up;
    case Phase::kPausing:
      return to == Phase::kCheckpointing || gives_up;
    case Phase::kCheckpointing:
      return to == Phase::kTransferring || gives_up;
    case Phase::kTransferring:
      return to == Phase::kRestoring || gives_up;
    case Phase::kRestoring:
      return to == Phase::kResuming || gives_up;
    // Committed: forward, unless a copy dies before any other rank was let into its epoch.
    case Phase::kResuming:
      return to == Phase::kSucceeded || gives_up;
    case Phase::kRollingBack:
      return to == Phase::kRolledBack || to == Phase::kFailed;
    case Phase::kSucceeded:
    case Phase::kRolledBack:
    case Phase::kFailed:
      return false;
  }
  return false;
}

namespace {

wire::EpochPlan renumbered(wire::EpochPlan plan, std::uint64_t epoch) {
  // <job uid>-e<epoch>: only the number changes.
  const auto dash = plan.pmix_namespace.rfind("-e");
  plan.pmix_namespace = std::format("{}-e{}", plan.pmix_namespace.substr(0, dash), epoch);
  plan.epoch = epoch;
  return plan;
}

wire::Member target_of(const Move& move) {
  return {move.rank, move.target_pod, move.target_uid, move.target_address, move.target_set, move.target_local};
}
wire::Member source_of(const Move& move) {
  return {move.rank, move.source_pod, move.source_uid, move.source_address, move.source_set, move.source_local};
}

void place(const Wave& wave, wire::Member (*where)(const Move&), wire::EpochPlan& plan) {
  for (const Move& move : wave.moves) {
    check(move.rank < plan.members.size(), "a move names a rank of the job");
    plan.members[move.rank] = where(move);
  }
}

}  // namespace

wire::EpochPlan next_plan(const Wave& wave, const wire::EpochPlan& base) {
  wire::EpochPlan plan = renumbered(base, wave.next_epoch);
  place(wave, target_of, plan);
  return plan;
}

wire::EpochPlan rollback_plan(const Wave& wave, const wire::EpochPlan& base) {
  wire::EpochPlan plan = renumbered(base, wave.rollback_epoch);
  if (base.epoch == wave.next_epoch) place(wave, source_of, plan);
  return plan;
}

Result<void> check_wave(const Wave& wave, const wire::EpochPlan& epoch) {
  auto wrong = [](const std::string& what) {
    return fail(ErrorCode::kInvalid, "status.waveState." + what + "; the wave is not one of this job as it is now");
  };
  if (wave.moves.empty() && !wave.checkpoint) return wrong("moves: empty");
  if (!wave.moves.empty() && wave.checkpoint) return wrong("checkpoint: nobody moves while a set is made");
  std::vector<bool> moves(epoch.members.size());
  for (std::size_t i = 0; i < wave.moves.size(); ++i) {
    const Move& move = wave.moves[i];
    auto field = [&](const char* name) { return std::format("moves[{}].{}", i, name); };
    if (move.rank >= epoch.members.size())
      return wrong(
          std::format("{}: {}, the job has {}", field("rank"), move.rank, counted(epoch.members.size(), "rank")));
    if (moves[move.rank]) return wrong(std::format("{}: {} moves twice", field("rank"), move.rank));
    moves[move.rank] = true;
    for (const auto& [name, set] : {std::pair{"targetSet", move.target_set}, {"sourceSet", move.source_set}})
      if (set >= epoch.sets.size())
        return wrong(std::format("{}: {}, the epoch has {}", field(name), set, counted(epoch.sets.size(), "Set")));
    if (move.source_pod.empty() || move.target_pod.empty() || move.source_pod == move.target_pod)
      return wrong(
          std::format("{}: \"{}\", and the target is \"{}\"", field("sourcePod"), move.source_pod, move.target_pod));
  }
  std::set<Seat> targets;
  for (const Move& move : wave.moves)
    if (!targets.insert(move.target()).second)
      return wrong(std::format("moves: two ranks move to seat {}", name_of(move.target())));
  if (wave.next_epoch <= wave.base_epoch || wave.rollback_epoch <= wave.next_epoch)
    return wrong(std::format("nextEpoch: epochs {}, {} and {} do not ascend", wave.base_epoch, wave.next_epoch,
                             wave.rollback_epoch));
  if (is_finished(wave)) return {};  // the job's epoch has moved on
  const bool resuming = wave.phase == Phase::kResuming;
  const bool back = wave.phase == Phase::kRollingBack;
  if (wave.rollback_committed && !back) return wrong("rollbackCommitted: true outside of RollingBack");
  const bool fits = wave.rollback_committed    ? epoch.epoch == wave.rollback_epoch
                    : resuming                 ? epoch.epoch == wave.next_epoch
                    : back && !wave.checkpoint ? epoch.epoch == wave.base_epoch || epoch.epoch == wave.next_epoch
                                               : epoch.epoch == wave.base_epoch;
  if (!fits)
    return wrong(std::format("baseEpoch: a wave from epoch {} to {} is {} while status.epoch is {}", wave.base_epoch,
                             wave.next_epoch, crds::to_string(wave.phase), epoch.epoch));
  for (const Move& move : wave.moves) {
    const wire::Member& member = epoch.members[move.rank];
    const Seat seat = epoch.epoch == wave.next_epoch ? move.target() : move.source();
    if (seat_of(member) != seat)
      return wrong(std::format("moves: rank {} is in {}, but status.epoch has it in {}", move.rank, name_of(seat),
                               name_of(seat_of(member))));
  }
  const bool is_committed = epoch.epoch == wave.next_epoch;
  if (is_committed || std::ranges::none_of(wave.moves, &Move::into_free_seat)) return {};
  for (const wire::Member& member : epoch.members)
    if (targets.contains(seat_of(member)))
      return wrong(std::format("moves: rank {} has seat {}, to which another is to move", member.rank,
                               name_of(seat_of(member))));
  return {};
}

nlohmann::json to_json(const Wave& wave) { return crds::reflect::write(wave); }
Result<Wave> wave_from_json(const nlohmann::json& j) { return crds::reflect::read<Wave>(j, "status.waveState"); }

}  // namespace bsp::migrate
