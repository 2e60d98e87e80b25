#include "operator/migrate/view.h"

#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"

namespace bsp::migrate {

void note_status(SidecarView& sidecar, wire::RankStatus status, SteadyTime now) {
  if (!sidecar.status || sidecar.status->phase != status.phase) sidecar.phase_since = now;
  sidecar.unreachable_since = SteadyTime{};
  sidecar.completed = std::max(sidecar.completed, status.completed);
  sidecar.completed_at = now;
  sidecar.status = std::move(status);
}

bool note_answer(SidecarView& sidecar, const Action& action, const Result<nlohmann::json>& answer) {
  if (answer) {
    sidecar.done[action.kind] = action.number;
    if (action.kind == ActionKind::kArmGate)
      sidecar.armed =
          ArmAnswer{action.number, count_at<std::uint64_t>(*answer, "completed"), flag_at(*answer, "late", false)};
    return true;
  }
  const Error& error = answer.error();
  // It had that gate and drops it, or has dropped it: what an earlier operator brought about (machine.h, settle_gate).
  if (action.kind == ActionKind::kCommitGate && error.code == ErrorCode::kConflict && !error.retryable)
    sidecar.done[action.kind] = action.number;
  const bool unreached = error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
  if (unreached || error.retryable) return true;
  // Only these mean that the wave can't go on; what brings things back is retried until it succeeds.
  if (action.kind == ActionKind::kPrepareEpoch || action.kind == ActionKind::kReceive ||
      action.kind == ActionKind::kSend || action.kind == ActionKind::kRestore || action.kind == ActionKind::kSave)
    sidecar.refused = std::format("{}: {}", to_string(action.kind), error.message);
  return false;
}

}  // namespace bsp::migrate
