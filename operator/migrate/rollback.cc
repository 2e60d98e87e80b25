// Going back: everyone runs again where they ran, and no target keeps a copy.
#include <algorithm>
#include <format>
#include <set>
#include <string_view>

#include "operator/migrate/machine.h"

namespace bsp::migrate {

void Machine::rolling_back() {
  if (fail_if_member_lost()) return;
  add_sidecar_failures();
  if (wave_.rollback_committed) {
    if (open(view_.epoch)) {
      measure();
      return enter(Phase::kRolledBack);
    }
  } else if (committed_next()) {
    if (take_back_commit()) return;
  } else {
    const bool discarded = targets_discarded();
    if (settle_gate()) {
      if (wave_.gate.state == GateState::kNone) {
        if (discarded) enter(Phase::kRolledBack);
        return;
      }
      // All ranks are stopped and the old epoch is closed, so going back takes a further epoch.
      if (commit_rollback(discarded)) return;
    }
  }
  if (changed_) return;
  // Ranks that still compute drop a gate at their next edge, which takes as long as a superstep.
  const bool stands_still = first_stop().has_value() || wave_.gate.state == GateState::kCancelling;
  const Duration limit = limits_.rollback + (stands_still ? Duration{} : limits_.postponed + gate_time());
  if (fail_if_job_ends(Phase::kRollingBack, limit)) return;
  if (const std::string who = not_settled(); who.empty())
    note_delay(Phase::kRollingBack, limit, kNotContinued, not_running());
  else
    note_delay(Phase::kRollingBack, limit,
               std::format("not every rank has given up the gate at superstep {}", wave_.gate.superstep), who);
}

bool Machine::commit_rollback(bool discarded) {
  wire::EpochPlan plan = rollback_plan(wave_, view_.epoch);
  if (!prepare(plan) || !discarded) return false;
  change();
  next_.wave.rollback_committed = true;
  next_.commit = std::move(plan);
  return true;
}

// The committed epoch names a copy that has died. Its source is stopped as it was, so a further epoch can name it, if
//
//   the copy's end is certain               or it and its source might compute
//   no other rank was let into the epoch    its process would be in the midst of MPI's opening, which can't be undone
//
// True: the wave goes back, or waits.
bool Machine::go_back_from_lost_target() {
  std::string why;
  bool certain = true, hopeless = false;
  for (const Move& move : wave_.moves) {
    const wire::Member& member = view_.epoch.members[move.rank];
    std::string lost = member_lost(member);
    if (lost.empty()) continue;
    if (why.empty()) why = std::move(lost);
    const SeatView* target = find(move.target());
    if (!target || target->has_ended() || target->uid != member.pod_uid) continue;
    certain = false;
    hopeless |= target->uncertain || !target->gone.empty();
  }
  if (why.empty() || hopeless || !admitted().empty()) return false;
  const wire::EpochPlan back = rollback_plan(wave_, view_.epoch);
  const bool sources_are_there = std::ranges::all_of(wave_.moves, [&](const Move& move) {
    const SeatView* source = find(move.source());
    return !move.source_uid.empty() && source && source->uid == move.source_uid && !source->lost() &&
           member_lost(back.members[move.rank]).empty();
  });
  if (!sources_are_there) return false;
  if (certain) roll_back("TargetLost", why);
  return true;  // else wait for its kubelet to report the end
}

// True: the step is decided. A sidecar that has prepared the further epoch no longer opens the one before
// (sidecar/agent/epochs.cc), so what it then reports is final.
bool Machine::take_back_commit() {
  if (const std::string who = admitted(); !who.empty()) {
    give_up("RankLost", std::format("{}; its source can't go on instead: {}", wave_.message, who),
            wave_.moves.front().rank);
    return true;
  }
  return commit_rollback(targets_discarded()) || changed_;
}

// Nothing else ends such a wave: neither a rank that takes long nor silence is a reason.
bool Machine::fail_if_job_ends(Phase since, Duration limit) {
  if (!view_.job_ends || !past(since, limit)) return false;
  give_up("Cancelled", view_.cancelled);
  return true;
}

// Again whenever the ranks that it waits for, or their phases, have changed.
void Machine::note_delay(Phase since, Duration limit, std::string_view what, const std::string& who) {
  if (!past(since, limit) || who.empty()) return;
  std::string delay = std::format("{} after {:.0f} s: {}", what, to_seconds(limit), who);
  if (delay == wave_.delay) return;
  change();
  next_.wave.delay = std::move(delay);
}

std::string Machine::admitted() const {
  for (const wire::Member& member : ranks().members) {
    if (std::ranges::contains(wave_.moves, seat_of(member), &Move::target)) continue;
    const SeatView* pod = find(seat_of(member));
    if (!pod || !pod->status) continue;
    if (pod->ended_well() || std::max(pod->status->admitted_epoch, pod->status->epoch) >= wave_.next_epoch)
      return std::format("rank {} was let into epoch {}", member.rank, wave_.next_epoch);
  }
  return "";
}

// A broken connection is reported at once; that the kernel had killed the other end is reported by its node, later.
void Machine::add_sidecar_failures() {
  for (const Move& move : wave_.moves)
    for (const Seat& seat : {move.source(), move.target()}) {
      const SeatView* pod = find(seat);
      if (!pod || pod->sidecar_failure.empty() || next_.wave.message.contains(pod->sidecar_failure)) continue;
      change();
      next_.wave.message += "; " + pod->sidecar_failure;
    }
}

bool Machine::settle_gate() {
  switch (wave_.gate.state) {
    case GateState::kNone:
      return true;
    case GateState::kArmed:
      change();
      next_.wave.gate.state = GateState::kCancelling;
      return false;
    case GateState::kCancelling: {
      if (!cancel_gate()) return false;
      change();
      next_.wave.gate.state = GateState::kNone;
      return false;
    }
    case GateState::kCommitted:
      if (all_stopped()) return true;
      change();
      next_.wave.gate.state = GateState::kDropping;
      return false;
    case GateState::kDropping: {
      if (all_stopped()) return true;
      // No rank passes another edge once one has finished, so the gate won't be reached.
      bool dropped = anyone_finished() && !first_stop();
      if (!dropped) {
        // Every rank must have the committed gate before any votes to drop it, or not all would take part in one vote.
        dropped = true;
        commit_gate();
        for_each_member([&](const wire::Member& member, const SeatView& pod) {
          const std::uint64_t p = wave_.gate.superstep;
          const bool cancelled = pod.has_done(ActionKind::kCancelGate, p);
          // What an operator that has ended since had sent may arrive late, and arm the gate again.
          const bool armed_again =
              cancelled && pod.status && pod.status->gate_superstep != 0 && !pod.status->gate_committed;
          if (!cancelled && pod.has_done(ActionKind::kCommitGate, p)) act(Action::cancel_gate(seat_of(member), p));
          if (armed_again) act(Action::cancel_gate(seat_of(member), pod.status->gate_superstep));
          dropped &= cancelled && pod.status && pod.status->gate_superstep == 0 &&
                     pod.status->phase != wire::RankPhase::kStopped && pod.status->phase != wire::RankPhase::kClosing;
        });
      }
      if (!dropped) return false;
      change();
      next_.wave.gate.state = GateState::kNone;
      return false;
    }
  }
  return false;
}

// True once no target can hold a copy. A target pod that doesn't answer is deleted, and the wave waits for its end: before the
// commit only for a while, since its copy is stopped and no epoch will name its pod; after it without a limit.
bool Machine::targets_discarded() {
  bool all = true;
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const Move& move = wave_.moves[i];
    if (const SeatView* source = find(move.source()); source && source->answers() && transfers(*source, move) &&
                                                      source->status->transfer.phase == wire::TransferPhase::kDumping) {
      act(Action::discard(move.source(), wave_, i));  // the dump is given up, the process stays
      all = false;
    }
    const SeatView* target = find(move.target());
    if (!target || target->has_ended() || target->uid != move.target_uid) continue;
    if (is_clean(*target, move)) continue;
    // A copy that was admitted to the committed epoch may have continued, which can't be undone.
    const bool went_on = committed_next() && target->status && target->status->admitted_epoch >= wave_.next_epoch;
    const bool asks = !went_on && target->answers() && !target->lost() && !past(Phase::kRollingBack, limits_.discard);
    if (move.into_free_seat) {  // only the copy goes, since other ranks are in its pod
      if (target->answers()) act(went_on ? Action::kill(move.target(), i) : Action::discard(move.target(), wave_, i));
    } else if (asks) {
      act(Action::discard(move.target(), wave_, i));
    } else if (!target->deleting) {
      act({ActionKind::kDeletePod, move.target(), 0, i});
    }
    all = false;
  }
  return all || (!committed_next() && past(Phase::kRollingBack, 3 * limits_.discard));
}

// A pod that other ranks stay in stays, without the stopped process of the one that left.
void Machine::remove_sources() {
  std::set<std::string_view> with_ranks;
  for (const wire::Member& member : view_.epoch.members) with_ranks.insert(member.pod);
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const Move& move = wave_.moves[i];
    const SeatView* source = find(move.source());
    if (!source || !source->exists || source->deleting) continue;
    if (!with_ranks.contains(move.source_pod))
      act({ActionKind::kDeletePod, move.source(), 0, i});
    else if (source->answers() && !source->has_ended() && source->status->phase != wire::RankPhase::kWaiting)
      act(Action::kill(move.source(), i));
  }
}

void Machine::remove_targets() {
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const Move& move = wave_.moves[i];
    const SeatView* target = find(move.target());
    if (!target || !target->exists || target->deleting) continue;
    if (!move.into_free_seat)
      act({ActionKind::kDeletePod, move.target(), 0, i});
    else if (target->answers() && !target->has_ended() && !is_clean(*target, move))
      act(Action::discard(move.target(), wave_, i));  // it did not answer while the wave went back
  }
}

}  // namespace bsp::migrate
