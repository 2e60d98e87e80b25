// What ends a wave before it has succeeded.
#include <algorithm>
#include <format>

#include "base/core/cpu_features.h"
#include "operator/migrate/machine.h"

namespace bsp::migrate {

using wire::RankPhase;
using wire::TransferPhase;

std::string Machine::member_lost(const wire::Member& member) const {
  const SeatView* pod = find(seat_of(member));
  if (!pod || !pod->exists) return std::format("pod {} of rank {} is gone", member.pod, member.rank);
  if (pod->deleting) return std::format("pod {} of rank {} is being deleted", member.pod, member.rank);
  if (!pod->uid.empty() && pod->uid != member.pod_uid)
    return std::format("pod {} of rank {} was replaced by another of the same name", member.pod, member.rank);
  if (!pod->gone.empty()) return pod->gone;
  if (pod->status && pod->status->phase == RankPhase::kExited) {
    // With pod and container, where it shares the pod with others.
    const std::string who = find(Seat{member.pod, 1})
                                ? std::format("rank {} ({}/{})", member.rank, member.pod, container_of(member.seat))
                                : std::format("rank {}", member.rank);
    if (const std::string& why = pod->status->exit_message; pod->status->exit_signal && !why.empty())
      return std::format("{} was {}", who, why);  // "killed by SIGKILL: …", in bsp-init's words
    if (pod->status->exit_signal) return std::format("{} was ended by signal {}", who, pod->status->exit_signal);
    if (pod->status->exit_code != 0) return std::format("{} exited with code {}", who, pod->status->exit_code);
    return "";
  }
  if (pod->ended && !(pod->status && pod->status->phase == RankPhase::kFinalized))
    return std::format("pod {} of rank {} ended: {}", name_of(seat_of(member)), member.rank, pod->message);
  return "";
}

bool Machine::fail_if_member_lost() {
  for (const wire::Member& member : ranks().members) {
    if (std::string why = member_lost(member); !why.empty()) {
      give_up("RankLost", why, member.rank);
      return true;
    }
  }
  return false;
}

bool Machine::give_up_if_needed() {
  if (!view_.cancelled.empty()) return roll_back("Cancelled", view_.cancelled), true;
  for (const wire::Member& member : view_.epoch.members) {
    auto move = std::ranges::find(wave_.moves, member.rank, &Move::rank);
    // Once the target holds the whole checkpoint the source is not needed to complete the move.
    const bool replaceable = move != wave_.moves.end() && target_has(*move);
    if (replaceable) continue;
    if (std::string why = member_lost(member); !why.empty()) return give_up("RankLost", why, member.rank), true;
    const SeatView* pod = find(seat_of(member));
    if (pod->unreachable_since != SteadyTime{} && view_.now > pod->unreachable_since + limits_.unreachable)
      return roll_back("SidecarUnreachable", std::format("the sidecar of rank {} ({}) does not answer", member.rank,
                                                         name_of(seat_of(member)))),
             true;
    if (!pod->refused.empty()) return roll_back("Refused", std::format("rank {}: {}", member.rank, pod->refused)), true;
    if (const wire::SaveStatus* save = saved(*pod); save && save->phase == wire::SavePhase::kFailed)
      return roll_back("CheckpointFailed", std::format("rank {}: {}", member.rank, save->error)), true;
    if (move != wave_.moves.end() && pod->status && transfers(*pod, *move) &&
        pod->status->transfer.phase == TransferPhase::kFailed)
      return roll_back("CheckpointFailed", std::format("rank {}: {}", member.rank, pod->status->transfer.error)), true;
  }
  for (const Move& move : wave_.moves) {
    const SeatView* pod = find(move.target());
    if (move.target_uid.empty() && (!pod || !pod->exists)) continue;  // still to be created
    auto trouble = [&](std::string reason, std::string what) {
      roll_back(std::move(reason), std::format("target {} of rank {}: {}", name_of(move.target()), move.rank, what));
      return true;
    };
    if (!pod || !pod->exists) return trouble("TargetLost", "the pod is gone");
    if (pod->deleting) return trouble("TargetLost", "the pod is being deleted");
    if (pod->ended) return trouble("TargetLost", pod->message);
    if (!pod->refused.empty()) return trouble("Refused", pod->refused);
    if (!move.target_uid.empty() && pod->uid != move.target_uid)
      return trouble("TargetLost", "the pod was replaced by another of the same name");
    if (pod->unreachable_since != SteadyTime{} && view_.now > pod->unreachable_since + limits_.unreachable)
      return trouble("TargetLost", "its sidecar does not answer");
    if (!pod->status) continue;
    // Before any rank stops, and once more by the target's bsp-init, which doesn't depend on what sidecars say.
    if (const SeatView* source = find(move.source()); source && source->status) {
      const wire::RankStatus &from = *source->status, &to = *pod->status;
      if (const CpuFeatures lacks = CpuFeatures(to.cpu_features).lacks(CpuFeatures(from.program_features));
          lacks.known())
        return trouble(
            "CPUFeaturesDiffer",
            std::format("the CPU of node {} lacks {}, which the program's libraries have seen when they chose "
                        "their code; with spec.cpu: Common a job starts with what the CPUs of all its Sets have",
                        move.target_node, lacks.text()));
      if (!from.runtime.empty() && !to.runtime.empty() && from.runtime != to.runtime)
        return trouble("RuntimeDiffers",
                       std::format("the program runs with libbspmpi.so {}, and the pod has {}: the runtime image has "
                                   "changed under its name; the job moves again after a restart",
                                   from.runtime.substr(0, 12), to.runtime.substr(0, 12)));
    }
    if (transfers(*pod, move) && pod->status->transfer.phase == TransferPhase::kFailed)
      return trouble("TransferFailed", pod->status->transfer.error);
    const bool must_have = wave_.phase != Phase::kPreparing && wave_.phase != Phase::kPausing;
    if (must_have && pod->answers() && (!transfers(*pod, move) || pod->status->transfer.phase == TransferPhase::kIdle))
      return trouble("TargetLost", "its sidecar was restarted and has lost the checkpoint");
  }
  return false;
}

bool Machine::overdue(Phase since, Duration limit) {
  const auto bytes = static_cast<double>(moved_bytes());
  const double measured =
      view_.bytes_per_second > 0 ? view_.bytes_per_second / limits_.slack : limits_.bytes_per_second;
  const double rate = std::clamp(measured, limits_.least_bytes_per_second, limits_.bytes_per_second);
  const Duration by_size = from_seconds(bytes / rate);
  if (!past(since, limit + by_size)) return false;
  next_.wave.late_seconds = to_seconds(view_.now - view_.since.at(since));
  roll_back(std::string(crds::to_string(since)) + "Timeout",
            std::format("not done after {:.0f} s, which is the limit for {:.0f} MB at {:.0f} MB/s",
                        to_seconds(limit + by_size), bytes * 1e-6, rate * 1e-6));
  return true;
}

}  // namespace bsp::migrate
