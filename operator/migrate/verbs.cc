// Verbs that bring a state about, sent until it is there.
#include <algorithm>
#include <set>
#include <string_view>

#include "operator/migrate/machine.h"

namespace bsp::migrate {

using wire::RankPhase;
using wire::TransferPhase;

// --- Verbs ---------------------------------------------------------------------------------------------
void Machine::commit_gate() {
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    const bool stopped = pod.status && pod.status->phase == RankPhase::kStopped;
    if (stopped || pod.has_done(ActionKind::kCommitGate, wave_.gate.superstep)) return;
    // What an operator that has ended since had sent may arrive late, and replace the gate by an earlier one.
    const bool other_gate = pod.status && pod.status->gate_superstep != 0 && !pod.status->gate_committed &&
                            pod.status->gate_superstep != wave_.gate.superstep;
    if (other_gate) return act(Action::arm_gate(seat_of(member), wave_.gate.superstep));
    // The verdict names the ranks that move, so a rank's checkpoint begins before we hear that it has stopped.
    // Source and copy stay stopped until an epoch names one of them.
    const auto move = std::ranges::find(wave_.moves, member.rank, &Move::rank);
    const bool sends = wave_.phase == Phase::kPausing && move != wave_.moves.end();
    if (wave_.phase == Phase::kPausing && wave_.checkpoint)
      return act(Action::commit_gate_and_save(seat_of(member), wave_.gate.superstep, wave_));
    act(sends ? Action::commit_gate_and_send(wave_.gate.superstep, wave_,
                                             static_cast<std::size_t>(move - wave_.moves.begin()))
              : Action::commit_gate(seat_of(member), wave_.gate.superstep));
  });
}

bool Machine::cancel_gate() {
  bool all = true;
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    const bool over = pod.status && pod.status->phase == RankPhase::kExited;
    if (over || pod.has_done(ActionKind::kCancelGate, wave_.gate.superstep)) return;
    act(Action::cancel_gate(seat_of(member), wave_.gate.superstep));
    all = false;
  });
  return all;
}

bool Machine::prepare(const wire::EpochPlan& plan) {
  bool all = true;
  Action::Plan shared;
  std::set<std::string_view> asked;  // pods: a sidecar prepares the epoch for all seats of its pod
  for (const wire::Member& member : plan.members) {
    const SeatView* pod = find(seat_of(member));
    if (pod && pod->answers() && pod->status->init_connected && pod->status->prepared_epoch >= plan.epoch) continue;
    if (pod && pod->exists && asked.insert(member.pod).second) {
      if (!shared) shared = std::make_shared<const wire::EpochPlan>(plan);
      act(Action::prepare_epoch(seat_of(member), shared));
    }
    all = false;
  }
  return all;
}

bool Machine::open(const wire::EpochPlan& plan) {
  prepare(plan);  // again, should a sidecar have been restarted
  auto moved = [&](const wire::Member& member) {
    return std::ranges::contains(wave_.moves, seat_of(member), &Move::target);
  };
  // The copies go first, and the others follow when each copy has said that it is in the epoch: until then their processes
  // are as they were, and an epoch can name the sources again. Only the copy itself can say so. That it was sent SIGCONT,
  // which its sidecar reports as Opening, doesn't mean that it comes to execute anything.
  const bool copies_go_on = std::ranges::all_of(plan.members, [&](const wire::Member& member) {
    const SeatView* pod = moved(member) ? find(seat_of(member)) : nullptr;
    return !moved(member) || (pod && pod->ended_well()) ||
           (pod && pod->status && pod->status->epoch == plan.epoch && pod->status->phase != RankPhase::kExited);
  });
  bool all = true;
  for (const wire::Member& member : plan.members) {
    const SeatView* pod = find(seat_of(member));
    const bool runs = pod && pod->status && pod->status->epoch == plan.epoch &&
                      pod->status->phase != RankPhase::kOpening && pod->status->phase != RankPhase::kStopped &&
                      pod->status->phase != RankPhase::kWaiting;
    if (runs || (pod && pod->ended_well())) continue;
    all = false;
    if (!copies_go_on && !moved(member)) continue;
    if (pod && pod->answers() && pod->status->prepared_epoch >= plan.epoch)
      act(Action::open_epoch(seat_of(member), plan.epoch));
  }
  return all;
}

bool Machine::targets_receive() {
  bool all = true;
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const Move& move = wave_.moves[i];
    const SeatView* pod = find(move.target());
    const bool waits = pod && pod->answers() && pod->status->init_connected && transfers(*pod, move) &&
                       pod->status->transfer.phase == TransferPhase::kReceiving;
    if (waits || target_has(move)) continue;
    all = false;
    if (pod && pod->answers()) act(Action::receive(wave_, i));
  }
  return all;
}

// By itself (kCommitGate), unless its sidecar was restarted in between. One that was restarted while it dumped dumps again.
void Machine::save_images() {
  if (!wave_.checkpoint) return;
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    const bool stopped = pod.answers() && pod.status->phase == RankPhase::kStopped;
    if (stopped && !saved(pod)) act(Action::save(seat_of(member), wave_));
  });
}

void Machine::move_images() {
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const Move& move = wave_.moves[i];
    const SeatView* source = find(move.source());
    const SeatView* target = find(move.target());
    if (target_has(move)) {
      // It does so by itself (kReceive), unless its sidecar was restarted in between. The copy stays stopped, so it
      // need not wait for the other moves.
      if (target->status->transfer.phase == TransferPhase::kReceived) act(Action::restore(wave_, i));
      continue;
    }
    // By itself too (kCommitGate), unless its sidecar was restarted in between.
    if (source && source->answers() && !transfers(*source, move)) act(Action::send(wave_, i));
  }
}

}  // namespace bsp::migrate
