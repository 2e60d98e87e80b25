#include "operator/migrate/step.h"

#include <algorithm>
#include <cmath>
#include <format>

#include "operator/migrate/machine.h"

namespace bsp::migrate {
namespace {

Step one_step(const Wave& wave, const View& view, Time now, const Limits& limits) {
  Machine m(wave, view, now, limits);
  switch (wave.phase) {
    case Phase::kPending:
      m.enter(Phase::kPreparing);
      break;
    case Phase::kPreparing:
      m.preparing();
      break;
    case Phase::kPausing:
      m.pausing();
      break;
    case Phase::kCheckpointing:
      m.checkpointing();
      break;
    case Phase::kTransferring:
      m.transferring();
      break;
    case Phase::kRestoring:
      m.restoring();
      break;
    case Phase::kResuming:
      m.resuming();
      break;
    case Phase::kRollingBack:
      m.rolling_back();
      break;
    case Phase::kSucceeded:
      m.remove_sources();
      break;
    case Phase::kRolledBack:
      m.remove_targets();
      break;
    case Phase::kFailed:
      break;  // the job kernel restarts the job and removes every pod
  }
  return m.take();
}

}  // namespace

Step step(const Wave& wave, const View& view, Time now, const Limits& limits) {
  Step s = one_step(wave, view, now, limits);
  // A change after which no verb is needed takes no write of its own: while the ranks stand still, each write costs them
  // time. What a commit changes shows only once it is stored.
  for (;;) {
    const WaveChange* change = s.change();
    if (!change || change->commit || is_finished(change->wave)) return s;
    Step next = one_step(change->wave, view, now, limits);
    if (!next.change()) return s;
    s = std::move(next);
  }
}

// --- Preparing: targets are created and warm while the job runs on ------------------------------------
void Machine::preparing() {
  if (give_up_if_needed()) return;
  if (past(Phase::kPreparing, limits_.prepare))
    return roll_back("PrepareTimeout", "the target pods were not ready in time: " + missing_targets());

  bool placed = true;
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const Move& move = wave_.moves[i];
    const SeatView* pod = find(move.target());
    if (!move.target_uid.empty()) continue;
    placed = false;
    if (!pod || !pod->exists) act({ActionKind::kCreateTargetPod, move.target(), 0, i});
  }
  if (!placed) {
    // The plan names uids and addresses, so it is complete, and stored, before any sidecar hears of it.
    const bool all_known = std::ranges::all_of(wave_.moves, [&](const Move& move) {
      const SeatView* pod = find(move.target());
      return pod && pod->exists && !pod->uid.empty() && !pod->address.empty();
    });
    if (!all_known) return;
    change();
    for (Move& move : next_.wave.moves) {
      const SeatView* pod = find(move.target());
      move.target_uid = pod->uid;
      move.target_address = pod->address;
    }
    return;
  }
  const bool prepared = prepare(next_plan(wave_, view_.epoch));
  if (targets_receive() && prepared) enter(Phase::kPausing);
}

// --- Pausing: a superstep ahead of every rank, agreed in two phases, then everyone stops ---------------
void Machine::pausing() {
  if (give_up_if_needed()) return;
  if (anyone_finished()) return roll_back("ProgramFinished", "the program ended before the superstep of the gate");
  if (follow_verdict()) return;
  prepare(next_plan(wave_, view_.epoch));  // again, should a sidecar have been restarted
  targets_receive();

  switch (wave_.gate.state) {
    case GateState::kNone:
      return set_gate();
    case GateState::kArmed:
      return arm_gate();
    case GateState::kCancelling: {
      if (!cancel_gate()) return;
      change();
      next_.wave.gate.state = GateState::kNone;
      return;
    }
    case GateState::kCommitted: {
      commit_gate();
      if (all_stopped()) return enter(Phase::kCheckpointing);
      if (const auto since = first_stop(); since && view_.now - *since > limits_.close)
        return roll_back("CloseTimeout", "not every rank stopped at the gate: " + not_stopped());
      if (first_stop()) return;
      if (const std::string why = blocked(Blocked::kForGood); !why.empty())
        return roll_back("Postponed", "the gate can't be passed while the program runs: " + why);
      if (past(Phase::kPausing, limits_.postponed + gate_time()))
        return roll_back("Postponed", "the gate was postponed for too long: " + waited_for());
      return note_postponement();
    }
    case GateState::kDropping:
      check(false, "a gate is dropped only while rolling back");
      return;
  }
}

// True: the step is decided. A verdict is stored before any sidecar hears of it. So a wave that knows of none is older than the ranks:
// a backup was restored.
bool Machine::follow_verdict() {
  if (wave_.gate.state == GateState::kCommitted) return false;
  bool same = false;
  std::string other;
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    const auto& said = pod.status;
    if (!said || !said->gate_committed || (said->wave != 0 && said->wave != wave_.number)) return;
    if (wave_.gate.state == GateState::kArmed && said->gate_superstep == wave_.gate.superstep)
      same = true;
    else
      other = std::format("rank {} stops at the gate at superstep {}, of which the stored wave knows nothing",
                          member.rank, said->gate_superstep);
  });
  if (!other.empty())
    give_up("StatusWentBack", "the stored status is older than the ranks, as after a restored backup: " + other);
  else if (same)
    change(), next_.wave.gate.state = GateState::kCommitted;
  return changed_;
}

void Machine::set_gate() {
  if (wave_.gate.attempt >= limits_.gate_attempts)
    return roll_back("GateTooLate", std::format("in {} attempts no superstep was far enough ahead of "
                                                "all ranks",
                                                wave_.gate.attempt));
  // P must still be ahead of every rank when the verdict arrives: two round trips to all sidecars, doubled after each
  // attempt that was late.
  const double margin = (4 * view_.round_trip_seconds + 0.010) * std::ldexp(1.0, wave_.gate.attempt);
  // A rank that hasn't reported may be slow, so the first gate is close by.
  const double unknown = wave_.gate.attempt == 0 ? 0 : std::ldexp(8.0, wave_.gate.attempt);
  const double lead = view_.superstep_seconds > 0 ? margin / view_.superstep_seconds : unknown;
  std::uint64_t newest = 0;
  for_each_member([&](const wire::Member&, const SeatView& pod) {
    // The rank has gone on since its last report; there is one a second at least.
    const double age =
        pod.completed_at == SteadyTime{} ? 0 : std::clamp(to_seconds(view_.now - pod.completed_at), 0.0, 1.0);
    const double since = view_.superstep_seconds > 0 ? std::min(age / view_.superstep_seconds, 1e9) : 0;
    newest =
        std::max({newest, pod.completed + static_cast<std::uint64_t>(since), pod.armed ? pod.armed->completed : 0});
  });
  change();
  next_.wave.gate = {.state = GateState::kArmed,
                     .superstep = newest + 2 + static_cast<std::uint64_t>(std::min(lead, 1e9)),
                     .attempt = wave_.gate.attempt + 1};
}

void Machine::arm_gate() {
  bool all = true, late = false;
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    if (pod.armed && pod.armed->superstep == wave_.gate.superstep) {
      late |= pod.armed->late;
      return;
    }
    all = false;
    act(Action::arm_gate(seat_of(member), wave_.gate.superstep));
  });
  if (!all && !late) return;
  change();
  // Stored before any commitGate is sent: from here on every sidecar must follow, even if this operator dies meanwhile,
  // because a rank at an armed gate waits for the verdict without a limit.
  next_.wave.gate.state = late ? GateState::kCancelling : GateState::kCommitted;
}

// --- Checkpointing, Transferring, Restoring: every rank is stopped -------------------------------------
void Machine::checkpointing() {
  if (give_up_if_needed() || overdue(Phase::kCheckpointing, limits_.checkpoint)) return;
  move_images();
  save_images();
  const bool dumped =
      all_saved() && std::ranges::all_of(wave_.moves, [&](const Move& move) {
        const SeatView* source = find(move.source());
        return target_has(move) ||
               (source && source->status && transfers(*source, move) &&
                (source->status->transfer.phase == wire::TransferPhase::kSent || source->status->transfer.dump_ns > 0));
      });
  if (dumped) enter(Phase::kTransferring);
}

void Machine::transferring() {
  if (give_up_if_needed() || overdue(Phase::kCheckpointing, limits_.checkpoint)) return;
  move_images();
  if (std::ranges::all_of(wave_.moves, [&](const Move& move) { return target_has(move); })) enter(Phase::kRestoring);
}

void Machine::restoring() {
  if (give_up_if_needed() || overdue(Phase::kRestoring, limits_.restore)) return;
  move_images();
  const wire::EpochPlan plan = next_plan(wave_, view_.epoch);
  const bool prepared = prepare(plan);
  const bool restored = std::ranges::all_of(wave_.moves, [&](const Move& move) {
    const SeatView* target = find(move.target());
    return target && target->answers() && transfers(*target, move) &&
           target->status->transfer.phase == wire::TransferPhase::kRestored;
  });
  if (!restored || !prepared) return;
  enter(Phase::kResuming);
  next_.commit = plan;  // the commit point: from here on the targets are the ranks
}

// --- Resuming: committed -------------------------------------------------------------------------------
void Machine::resuming() {
  check(committed_next(), "a resuming wave has committed its epoch");
  if (go_back_from_lost_target() || fail_if_member_lost()) return;
  if (open(view_.epoch)) {
    // Every rank computes in the new epoch, so the stopped processes in the source pods are no longer needed and may end
    // (remove_sources).
    measure();
    return enter(Phase::kSucceeded);
  }
  if (!fail_if_job_ends(Phase::kResuming, limits_.resume))
    note_delay(Phase::kResuming, limits_.resume, kNotContinued, not_running());
}

}  // namespace bsp::migrate
