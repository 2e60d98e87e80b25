#include "operator/migrate/machine.h"

#include <algorithm>
#include <format>

namespace bsp::migrate {

using wire::RankPhase;
using wire::TransferPhase;

// --- Answers -------------------------------------------------------------------------------------------
void Machine::enter(Phase to) {
  check(is_valid_transition(wave_.phase, to), "the wave's transition is in the drawing");
  change();
  next_.wave.delay.clear();
  next_.wave.phase = to;
  next_.wave.times.push_back({to, now_});
}

void Machine::act(Action action) {
  const bool of_pod = action.kind == ActionKind::kCreateTargetPod || action.kind == ActionKind::kDeletePod;
  // Several moves may begin or end in one pod.
  if (of_pod && std::ranges::any_of(actions_, [&](const Action& other) {
        return other.kind == action.kind && other.seat.pod == action.seat.pod;
      }))
    return;
  action.token = token_of(wave_);
  actions_.push_back(std::move(action));
}

Step Machine::take() {
  if (changed_) return Step(std::move(next_));  // the actions are asked for again once it is stored
  return Step(std::move(actions_));
}

void Machine::roll_back(std::string reason, std::string message) {
  next_.wave.reason = std::move(reason);
  next_.wave.message = std::move(message);
  enter(Phase::kRollingBack);
}

void Machine::give_up(std::string reason, std::string message, std::optional<std::uint32_t> rank) {
  next_.wave.reason = std::move(reason);
  next_.wave.message = std::move(message);
  next_.wave.lost_rank = rank;
  enter(Phase::kFailed);
}

// --- Questions -----------------------------------------------------------------------------------------
const SeatView* Machine::find(const Seat& seat) const {
  auto it = view_.seats.find(seat);
  return it == view_.seats.end() ? nullptr : &it->second;
}

void Machine::for_each_member(const std::function<void(const wire::Member&, const SeatView&)>& f) const {
  for (const wire::Member& member : ranks().members)
    if (const SeatView* pod = find(seat_of(member))) f(member, *pod);
}

bool Machine::target_has(const Move& move) const {
  const SeatView* pod = find(move.target());
  if (!pod || pod->lost() || !transfers(*pod, move)) return false;
  const TransferPhase phase = pod->status->transfer.phase;
  return phase == TransferPhase::kReceived || phase == TransferPhase::kRestoring || phase == TransferPhase::kRestored;
}

bool Machine::all_saved() const {
  return !wave_.checkpoint || std::ranges::all_of(ranks().members, [&](const wire::Member& member) {
    const SeatView* pod = find(seat_of(member));
    const wire::SaveStatus* save = pod ? saved(*pod) : nullptr;
    return save && (save->phase == wire::SavePhase::kDumped || save->phase == wire::SavePhase::kStored);
  });
}

bool Machine::all_stopped() const {
  bool all = true;
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    // Only a stopped rank is dumped; whatever has become of it since, the others need not wait for it.
    const auto move = std::ranges::find(wave_.moves, member.rank, &Move::rank);
    if (move != wave_.moves.end() && target_has(*move)) return;
    all &= pod.status && pod.status->phase == RankPhase::kStopped;
  });
  return all;
}

bool Machine::anyone_finished() const {
  bool any = false;
  for_each_member([&](const wire::Member&, const SeatView& pod) {
    any |= pod.ended_well() || (pod.status && pod.status->phase == RankPhase::kFinalized);
  });
  return any;
}

std::optional<SteadyTime> Machine::first_stop() const {
  std::optional<SteadyTime> first;
  for_each_member([&](const wire::Member&, const SeatView& pod) {
    if (!pod.status || (pod.status->phase != RankPhase::kStopped && pod.status->phase != RankPhase::kClosing)) return;
    if (!first || pod.phase_since < *first) first = pod.phase_since;
  });
  return first;
}

Duration Machine::gate_time() const {
  // Supersteps between the newest known and P, at the pace of late, times two.
  std::uint64_t newest = 0;
  for_each_member([&](const wire::Member&, const SeatView& pod) { newest = std::max(newest, pod.completed); });
  const std::uint64_t ahead = wave_.gate.superstep > newest ? wave_.gate.superstep - newest : 0;
  return from_seconds(std::min(2 * view_.superstep_seconds * static_cast<double>(ahead), 1e8));
}

std::uint64_t Machine::moved_bytes() const {
  std::uint64_t most = 0;
  if (wave_.checkpoint)
    for_each_member([&](const wire::Member&, const SeatView& pod) {
      if (pod.status) most = std::max(most, pod.status->memory_bytes);
    });
  for (const Move& move : wave_.moves)
    if (const SeatView* pod = find(move.source()); pod && pod->status) most = std::max(most, pod->status->memory_bytes);
  return most;
}

}  // namespace bsp::migrate
