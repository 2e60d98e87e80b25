// Going back: everyone runs again where they ran, and no target keeps a copy.
#include <algorithm>
#include <format>

#include "operator/migrate/machine.h"

namespace bsp::migrate {

void Machine::rolling_back() {
  if (fail_if_member_lost()) return;
  tell_who_was_crippled();
  // Ranks that run on, or that wait for nothing but the next superstep, may take all the time they need.
  const bool stands_still = first_stop().has_value() || wave_.gate.state == GateState::kCancelling;
  if (stands_still && past(Phase::kRollingBack, limits_.rollback))
    return give_up("RollbackTimeout", wave_.message + "; then not every rank continued: " + not_running());

  if (wave_.rollback_committed) {
    if (!open(view_.epoch)) return;
    measure();
    return enter(Phase::kRolledBack);
  }
  const bool discarded = targets_discarded();
  if (!settle_gate()) return;
  if (wave_.gate.state == GateState::kNone) {
    if (discarded) enter(Phase::kRolledBack);
    return;
  }
  // All ranks stand stopped: the old epoch is closed, so going back takes an epoch of its own.
  const wire::EpochPlan plan = rollback_plan(wave_, view_.epoch);
  if (!prepare(plan) || !discarded) return;
  change();
  out_.wave.rollback_committed = true;
  out_.commit = plan;
}

// A connection that broke is told at once; that the kernel had killed the other end comes by way of its node, later.
void Machine::tell_who_was_crippled() {
  for (const Move& move : wave_.moves)
    for (const std::string* name : {&move.source_pod, &move.target_pod}) {
      const PodView* pod = find(*name);
      if (!pod || pod->crippled.empty() || out_.wave.message.contains(pod->crippled)) continue;
      change();
      out_.wave.message += "; " + pod->crippled;
    }
}

bool Machine::settle_gate() {
  switch (wave_.gate.state) {
    case GateState::kNone:
      return true;
    case GateState::kArmed:
      change();
      out_.wave.gate.state = GateState::kCancelling;
      return false;
    case GateState::kCancelling: {
      if (!cancel_gate()) return false;
      change();
      out_.wave.gate.state = GateState::kNone;
      return false;
    }
    case GateState::kCommitted:
      if (all_stopped()) return true;
      change();
      out_.wave.gate.state = GateState::kDropping;
      return false;
    case GateState::kDropping: {
      if (all_stopped()) return true;
      // Nobody passes another edge once a rank has finished: no gate will be reached any more.
      bool dropped = anyone_finished() && !first_stop();
      if (!dropped) {
        // All must know of the gate before any votes to drop it, or they would not meet in one vote.
        dropped = true;
        commit_gate();
        for_each_member([&](const wire::Member&, const PodView& pod) {
          const std::uint64_t p = wave_.gate.superstep;
          const bool told = pod.done.contains({ActionKind::kCancelGate, p});
          if (!told && pod.done.contains({ActionKind::kCommitGate, p}))
            act({ActionKind::kCancelGate, name_of(pod), p, {}});
          dropped &= told && pod.status && pod.status->gate_superstep == 0 &&
                     pod.status->phase != wire::RankPhase::kStopped && pod.status->phase != wire::RankPhase::kClosing;
        });
      }
      if (!dropped) return false;
      change();
      out_.wave.gate.state = GateState::kNone;
      return false;
    }
  }
  return false;
}

// True once no target can hold a copy. A target that doesn't answer is deleted and waited for, but not
// for ever: its copy is stopped, only an epoch that names its pod could continue it, and none will.
bool Machine::targets_discarded() {
  bool all = true;
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const Move& move = wave_.moves[i];
    if (const PodView* source = find(move.source_pod);
        source && source->answers() && transfers(*source, move) &&
        source->status->transfer.phase == wire::TransferPhase::kDumping) {
      act({ActionKind::kDiscard, move.source_pod, 0, i});  // the dump is given up, the process stays
      all = false;
    }
    const PodView* target = find(move.target_pod);
    if (!target || !target->exists) continue;
    const bool clean = target->answers() && !target->deleting && target->status->phase == wire::RankPhase::kWaiting &&
                       (target->status->transfer.phase == wire::TransferPhase::kIdle || !transfers(*target, move));
    if (clean) continue;
    const bool asks = target->answers() && !target->lost() && !past(Phase::kRollingBack, limits_.discard);
    if (asks)
      act({ActionKind::kDiscard, move.target_pod, 0, i});
    else if (!target->deleting)
      act({ActionKind::kDeletePod, move.target_pod, 0, i});
    all = false;
  }
  return all || past(Phase::kRollingBack, 3 * limits_.discard);
}

void Machine::remove_sources() {
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const PodView* source = find(wave_.moves[i].source_pod);
    if (source && source->exists && !source->deleting) act({ActionKind::kDeletePod, wave_.moves[i].source_pod, 0, i});
  }
}

void Machine::remove_targets() {
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const PodView* target = find(wave_.moves[i].target_pod);
    if (target && target->exists && !target->deleting) act({ActionKind::kDeletePod, wave_.moves[i].target_pod, 0, i});
  }
}

}  // namespace bsp::migrate
