// Which ranks a wave waits for, for people.
#include <algorithm>
#include <bit>
#include <format>

#include "base/core/first_few.h"
#include "operator/migrate/machine.h"

namespace bsp::migrate {

using wire::RankPhase;

// A target is asked to receive once all are there, so one that doesn't only waits while others are missing.
std::string Machine::missing_targets() const {
  FirstFew missing, silent;
  for (const Move& move : wave_.moves) {
    const SeatView* pod = find(move.target());
    const char* what = !pod || !pod->exists           ? "was not created"
                       : pod->address.empty()         ? "has no address"
                       : !pod->status                 ? "has a sidecar that never answered"
                       : !pod->status->init_connected ? "has no bsp-init"
                                                      : "";
    if (*what)
      missing.add(std::format("{} {}{}{}", name_of(move.target()), what, pod && !pod->pending.empty() ? ": " : "",
                              pod ? pod->pending : ""));
    else if (!transfers(*pod, move))
      silent.add(name_of(move.target()) + " does not receive");
  }
  if (!missing.empty()) return missing.text();
  return silent.empty() ? "not every sidecar prepared the next epoch" : silent.text();
}

namespace {
std::string activity_of(const wire::Member& member, const SeatView& pod) {
  return std::format("rank {} ({}) is {}", member.rank, name_of(seat_of(member)),
                     pod.answers() ? wire::to_string(pod.status->phase) : "not heard");
}
// A process that hangs before it executes anything looks like one in MPI's opening, but another cure helps.
std::string progress_of(const wire::Member& member, const SeatView& pod, std::uint64_t epoch) {
  if (!pod.answers() || pod.status->phase != RankPhase::kOpening || pod.status->epoch >= epoch)
    return activity_of(member, pod);
  return std::format("rank {} ({}) was continued, but has not come to open epoch {}", member.rank,
                     name_of(seat_of(member)), epoch);
}
}  // namespace

std::string Machine::not_stopped() const {
  FirstFew ranks;
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    if (!pod.status || pod.status->phase != RankPhase::kStopped) ranks.add(activity_of(member, pod));
  });
  return ranks.text();
}

std::string Machine::not_running() const {
  FirstFew ranks;
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    if (!pod.answers() || pod.status->phase != RankPhase::kRunning)
      ranks.add(progress_of(member, pod, this->ranks().epoch));
  });
  return ranks.text();
}

std::string Machine::not_settled() const {
  FirstFew ranks;
  const bool settles = wave_.gate.state == GateState::kCancelling || wave_.gate.state == GateState::kDropping;
  if (!settles || all_stopped()) return "";
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    const bool over = pod.status && pod.status->phase == RankPhase::kExited;
    const bool holds = !pod.status || pod.status->gate_superstep == wave_.gate.superstep;
    if (!over && (holds || !pod.has_done(ActionKind::kCancelGate, wave_.gate.superstep)))
      ranks.add(activity_of(member, pod));
  });
  return ranks.text();
}

std::string Machine::blocked(Blocked how) const {
  FirstFew ranks;
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    if (!pod.status || pod.status->blocked_reason.empty()) return;
    if (how == Blocked::kNow || pod.status->blocked_for_good)
      ranks.add(std::format("rank {}: {}", member.rank, pod.status->blocked_reason));
  });
  return ranks.empty() ? "" : ranks.text();
}

std::string Machine::waited_for() const {
  if (std::string ranks = blocked(Blocked::kNow); !ranks.empty()) return ranks;
  FirstFew before;
  for_each_member([&](const wire::Member& member, const SeatView& pod) {
    if (pod.completed < wave_.gate.superstep) before.add(std::format("rank {} (at {})", member.rank, pod.completed));
  });
  return before.empty() ? "no rank reached it"
                        : std::format("superstep {} is still ahead of {}", wave_.gate.superstep, before.text());
}

// Less often the longer it lasts, since each is a write.
void Machine::note_postponement() {
  const auto since = view_.since.find(Phase::kPausing);
  if (since == view_.since.end()) return;
  const double seconds = to_seconds(view_.now - since->second);
  if (seconds < 1) return;
  const std::string begin =
      std::format("postponed, for {} s so far: ", std::bit_floor(static_cast<std::uint64_t>(seconds)));
  if (wave_.delay.starts_with(begin)) return;
  change();
  next_.wave.delay = begin + waited_for();
}

}  // namespace bsp::migrate
