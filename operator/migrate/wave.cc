#include "operator/migrate/wave.h"

#include <format>

#include "operator/migrate/view.h"

namespace bsp::migrate {

std::string_view to_string(GateState state) {
  switch (state) {
    case GateState::kNone:
      return "None";
    case GateState::kArmed:
      return "Armed";
    case GateState::kCommitted:
      return "Committed";
    case GateState::kCancelling:
      return "Cancelling";
    case GateState::kDropping:
      return "Dropping";
  }
  return "?";
}

std::string_view to_string(ActionKind kind) {
  switch (kind) {
    case ActionKind::kCreateTargetPod:
      return "create target pod";
    case ActionKind::kDeletePod:
      return "delete pod";
    case ActionKind::kPrepareEpoch:
      return "prepareEpoch";
    case ActionKind::kOpenEpoch:
      return "openEpoch";
    case ActionKind::kReceive:
      return "receive";
    case ActionKind::kArmGate:
      return "armGate";
    case ActionKind::kCommitGate:
      return "commitGate";
    case ActionKind::kCancelGate:
      return "cancelGate";
    case ActionKind::kSend:
      return "send";
    case ActionKind::kRestore:
      return "restore";
    case ActionKind::kDiscard:
      return "discard";
  }
  return "?";
}

Time Wave::entered(Phase p) const {
  for (auto it = times.rbegin(); it != times.rend(); ++it)
    if (it->phase == p) return it->time;
  return Time{};
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
    // Committed: forward only.
    case Phase::kResuming:
      return to == Phase::kSucceeded || to == Phase::kFailed;
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

}  // namespace

wire::EpochPlan next_plan(const Wave& wave, const wire::EpochPlan& base) {
  wire::EpochPlan plan = renumbered(base, wave.next_epoch);
  for (const Move& move : wave.moves) {
    check(move.rank < plan.members.size(), "a move names a rank of the job");
    wire::Member& member = plan.members[move.rank];
    member.pod = move.target_pod;
    member.pod_uid = move.target_uid;
    member.address = move.target_address;
    member.set = move.target_set;
  }
  return plan;
}

wire::EpochPlan rollback_plan(const Wave& wave, const wire::EpochPlan& base) {
  return renumbered(base, wave.rollback_epoch);
}

}  // namespace bsp::migrate
