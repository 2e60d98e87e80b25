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

void Machine::measure() {
  std::uint64_t first_gate = ~0ull, last_stop = 0, first_compute = ~0ull, first_open = ~0ull;
  auto ms = [](std::uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
  crds::PauseParts pause;
  auto stop_side = [&](const PodView* pod) {
    if (!pod || !pod->status) return;
    if (pod->status->gate_reached_ns) first_gate = std::min(first_gate, pod->status->gate_reached_ns);
    last_stop = std::max(last_stop, pod->status->stopped_ns);
    pause.close_ms = std::max(pause.close_ms, ms(pod->status->close_ns));
  };
  for_each_member([&](const wire::Member& member, const PodView& pod) {
    if (!pod.status) return;
    auto moved = std::ranges::find(wave_.moves, member.rank, &Move::rank);
    const bool on_target = moved != wave_.moves.end() && moved->target_pod == member.pod;
    stop_side(on_target ? find(moved->source_pod) : &pod);
    if (pod.status->first_compute_ns) {
      first_compute = std::min(first_compute, pod.status->first_compute_ns);
      first_open = std::min(first_open, pod.status->first_compute_ns - pod.status->open_ns);
    }
    pause.open_ms = std::max(pause.open_ms, ms(pod.status->open_ns));
  });
  if (last_stop == 0) return;  // nothing was paused
  if (first_compute != ~0ull && first_compute > last_stop) pause.total_ms = ms(first_compute - last_stop);
  if (first_gate < last_stop) pause.gate_ms = ms(last_stop - first_gate);
  // From the operator's verdict to the first rank that was told: it is stored and sent.
  const auto committed = static_cast<std::uint64_t>(wave_.entered(Phase::kResuming).time_since_epoch().count());
  if (committed != 0 && first_open != ~0ull && first_open > committed) pause.commit_ms = ms(first_open - committed);
  for (const Move& move : wave_.moves) {
    std::uint64_t bytes = 0;
    if (const PodView* source = find(move.source_pod); source && transfers(*source, move)) {
      pause.dump_ms = std::max(pause.dump_ms, ms(source->status->transfer.dump_ns));
      bytes = source->status->transfer.bytes;
    }
    if (const PodView* target = find(move.target_pod); target && transfers(*target, move)) {
      pause.transfer_ms = std::max(pause.transfer_ms, ms(target->status->transfer.transfer_ns));
      pause.restore_ms = std::max(pause.restore_ms, ms(target->status->transfer.restore_ns));
      bytes = std::max(bytes, target->status->transfer.bytes);
    }
    next_.wave.bytes.push_back(bytes);
  }
  next_.wave.pause = pause;
}

// --- Troubles ------------------------------------------------------------------------------------------
std::string Machine::member_lost(const wire::Member& member) const {
  const PodView* pod = find(member.pod);
  if (!pod || !pod->exists) return std::format("pod {} of rank {} is gone", member.pod, member.rank);
  if (pod->deleting) return std::format("pod {} of rank {} is being deleted", member.pod, member.rank);
  if (!pod->uid.empty() && pod->uid != member.pod_uid)
    return std::format("pod {} of rank {} was replaced by another of the same name", member.pod, member.rank);
  if (!pod->gone.empty()) return pod->gone;
  if (pod->status && pod->status->phase == RankPhase::kExited) {
    if (const std::string& why = pod->status->exit_message; pod->status->exit_signal && !why.empty())
      return std::format("rank {} was {}", member.rank, why);  // "killed by SIGKILL: …", in bsp-init's words
    if (pod->status->exit_signal)
      return std::format("rank {} was ended by signal {}", member.rank, pod->status->exit_signal);
    if (pod->status->exit_code != 0)
      return std::format("rank {} exited with code {}", member.rank, pod->status->exit_code);
    return "";
  }
  if (pod->ended && !(pod->status && pod->status->phase == RankPhase::kFinalized))
    return std::format("pod {} of rank {} ended: {}", member.pod, member.rank, pod->message);
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

bool Machine::give_up_if_troubled() {
  if (!view_.cancelled.empty()) return roll_back("Cancelled", view_.cancelled), true;
  for (const wire::Member& member : view_.epoch.members) {
    auto move = std::ranges::find(wave_.moves, member.rank, &Move::rank);
    // Once the target holds the whole checkpoint the source is not needed to complete the move.
    const bool replaceable = move != wave_.moves.end() && target_has(*move);
    if (replaceable) continue;
    if (std::string why = member_lost(member); !why.empty()) return give_up("RankLost", why, member.rank), true;
    const PodView* pod = find(member.pod);
    if (pod->unreachable_since != SteadyTime{} && view_.now > pod->unreachable_since + limits_.unreachable)
      return roll_back("SidecarUnreachable",
                       std::format("the sidecar of rank {} ({}) does not answer", member.rank, member.pod)),
             true;
    if (!pod->refused.empty()) return roll_back("Refused", std::format("rank {}: {}", member.rank, pod->refused)), true;
    if (move != wave_.moves.end() && pod->status && transfers(*pod, *move) &&
        pod->status->transfer.phase == TransferPhase::kFailed)
      return roll_back("CheckpointFailed", std::format("rank {}: {}", member.rank, pod->status->transfer.error)), true;
  }
  for (const Move& move : wave_.moves) {
    const PodView* pod = find(move.target_pod);
    if (move.target_uid.empty() && (!pod || !pod->exists)) continue;  // still to be created
    auto trouble = [&](std::string reason, std::string what) {
      roll_back(std::move(reason), std::format("target {} of rank {}: {}", move.target_pod, move.rank, what));
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

// --- Verbs ---------------------------------------------------------------------------------------------
void Machine::commit_gate() {
  for_each_member([&](const wire::Member& member, const PodView& pod) {
    const bool stopped = pod.status && pod.status->phase == RankPhase::kStopped;
    if (stopped || pod.done.contains({ActionKind::kCommitGate, wave_.gate.superstep})) return;
    // A rank that moves is told so with the verdict: its checkpoint is under way before we have heard of its stop.
    // It stays stopped all the same, as does the copy, until an epoch names one of them.
    const auto move = std::ranges::find(wave_.moves, member.rank, &Move::rank);
    const bool sends = wave_.phase == Phase::kPausing && move != wave_.moves.end();
    act(sends ? Action::commit_gate_and_send(wave_.gate.superstep, wave_,
                                             static_cast<std::size_t>(move - wave_.moves.begin()))
              : Action::commit_gate(name_of(pod), wave_.gate.superstep));
  });
}

bool Machine::cancel_gate() {
  bool all = true;
  for_each_member([&](const wire::Member&, const PodView& pod) {
    const bool over = pod.status && pod.status->phase == RankPhase::kExited;
    if (over || pod.done.contains({ActionKind::kCancelGate, wave_.gate.superstep})) return;
    act(Action::cancel_gate(name_of(pod), wave_.gate.superstep));
    all = false;
  });
  return all;
}

bool Machine::prepare(const wire::EpochPlan& plan) {
  bool all = true;
  Action::Fields fields;
  for (const wire::Member& member : plan.members) {
    const PodView* pod = find(member.pod);
    if (pod && pod->answers() && pod->status->init_connected && pod->status->prepared_epoch >= plan.epoch) continue;
    if (pod && pod->exists) {
      if (!fields) fields = encode(plan);
      act(Action::prepare_epoch(member.pod, plan.epoch, fields));
    }
    all = false;
  }
  return all;
}

bool Machine::open(const wire::EpochPlan& plan) {
  prepare(plan);  // again, should a sidecar have been restarted
  auto moved = [&](const wire::Member& member) {
    return std::ranges::contains(wave_.moves, member.pod, &Move::target_pod);
  };
  // The copies go first, and the others follow when each copy has been seen to go on: until then their processes are
  // as they were, and an epoch can name the sources again.
  const bool copies_go_on = std::ranges::all_of(plan.members, [&](const wire::Member& member) {
    const PodView* pod = moved(member) ? find(member.pod) : nullptr;
    return !moved(member) || (pod && pod->status && pod->status->phase != RankPhase::kStopped &&
                              pod->status->phase != RankPhase::kWaiting && pod->status->phase != RankPhase::kExited);
  });
  bool all = true;
  for (const wire::Member& member : plan.members) {
    const PodView* pod = find(member.pod);
    const bool runs = pod && pod->status && pod->status->epoch == plan.epoch &&
                      pod->status->phase != RankPhase::kOpening && pod->status->phase != RankPhase::kStopped &&
                      pod->status->phase != RankPhase::kWaiting;
    if (runs) continue;
    all = false;
    if (!copies_go_on && !moved(member)) continue;
    if (pod && pod->answers() && pod->status->prepared_epoch >= plan.epoch)
      act(Action::open_epoch(member.pod, plan.epoch));
  }
  return all;
}

bool Machine::targets_receive() {
  bool all = true;
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const Move& move = wave_.moves[i];
    const PodView* pod = find(move.target_pod);
    const bool waits = pod && pod->answers() && pod->status->init_connected && transfers(*pod, move) &&
                       pod->status->transfer.phase == TransferPhase::kReceiving;
    if (waits || target_has(move)) continue;
    all = false;
    if (pod && pod->answers()) act(Action::receive(wave_, i));
  }
  return all;
}

void Machine::move_images() {
  for (std::size_t i = 0; i < wave_.moves.size(); ++i) {
    const Move& move = wave_.moves[i];
    const PodView* source = find(move.source_pod);
    const PodView* target = find(move.target_pod);
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

// --- Questions -----------------------------------------------------------------------------------------
const PodView* Machine::find(const std::string& pod) const {
  auto it = view_.pods.find(pod);
  return it == view_.pods.end() ? nullptr : &it->second;
}

const std::string& Machine::name_of(const PodView& pod) const {
  for (const auto& [name, p] : view_.pods)
    if (&p == &pod) return name;
  check(false, "the pod is one of the view's");
  return view_.pods.begin()->first;
}

void Machine::for_each_member(const std::function<void(const wire::Member&, const PodView&)>& f) const {
  for (const wire::Member& member : ranks().members)
    if (const PodView* pod = find(member.pod)) f(member, *pod);
}

bool Machine::target_has(const Move& move) const {
  const PodView* pod = find(move.target_pod);
  if (!pod || pod->lost() || !transfers(*pod, move)) return false;
  const TransferPhase phase = pod->status->transfer.phase;
  return phase == TransferPhase::kReceived || phase == TransferPhase::kRestoring || phase == TransferPhase::kRestored;
}

bool Machine::all_stopped() const {
  bool all = true;
  for_each_member([&](const wire::Member& member, const PodView& pod) {
    // Only a stopped rank is dumped; whatever has become of it since, the others need not wait for it.
    const auto move = std::ranges::find(wave_.moves, member.rank, &Move::rank);
    if (move != wave_.moves.end() && target_has(*move)) return;
    all &= pod.status && pod.status->phase == RankPhase::kStopped;
  });
  return all;
}

bool Machine::anyone_finished() const {
  bool any = false;
  for_each_member([&](const wire::Member&, const PodView& pod) {
    any |= pod.status &&
           (pod.status->phase == RankPhase::kFinalized ||
            (pod.status->phase == RankPhase::kExited && pod.status->exit_code == 0 && pod.status->exit_signal == 0));
  });
  return any;
}

std::optional<SteadyTime> Machine::first_stop() const {
  std::optional<SteadyTime> first;
  for_each_member([&](const wire::Member&, const PodView& pod) {
    if (!pod.status || (pod.status->phase != RankPhase::kStopped && pod.status->phase != RankPhase::kClosing)) return;
    if (!first || pod.phase_since < *first) first = pod.phase_since;
  });
  return first;
}

Duration Machine::gate_time() const {
  // Supersteps between the newest known and P, at the pace of late, times two.
  std::uint64_t newest = 0;
  for_each_member([&](const wire::Member&, const PodView& pod) { newest = std::max(newest, pod.completed); });
  const std::uint64_t ahead = wave_.gate.superstep > newest ? wave_.gate.superstep - newest : 0;
  return from_seconds(std::min(2 * view_.superstep_seconds * static_cast<double>(ahead), 1e8));
}

std::uint64_t Machine::moved_bytes() const {
  std::uint64_t most = 0;
  for (const Move& move : wave_.moves)
    if (const PodView* pod = find(move.source_pod); pod && pod->status)
      most = std::max(most, pod->status->memory_bytes);
  return most;
}

std::string Machine::missing_targets() const {
  std::string text;
  for (const Move& move : wave_.moves) {
    const PodView* pod = find(move.target_pod);
    const char* what = !pod || !pod->exists           ? "was not created"
                       : pod->address.empty()         ? "has no address"
                       : !pod->status                 ? "has a sidecar that never answered"
                       : !pod->status->init_connected ? "has no bsp-init"
                       : !transfers(*pod, move)       ? "does not receive"
                                                      : "";
    if (*what)
      text += std::format("{}{} {}{}{}", text.empty() ? "" : ", ", move.target_pod, what,
                          pod && !pod->pending.empty() ? ": " : "", pod ? pod->pending : "");
  }
  return text.empty() ? "not every sidecar prepared the next epoch" : text;
}

namespace {
// Ranks, where they are and what they do: the first few of them.
class RankList {
 public:
  void add(const wire::Member& member, const PodView& pod) {
    constexpr std::size_t kNamed = 8;
    if (++count_ > kNamed) return;
    text_ += std::format("{}rank {} ({}) is {}", text_.empty() ? "" : ", ", member.rank, member.pod,
                         pod.answers() ? wire::to_string(pod.status->phase) : "not heard");
    named_ = count_;
  }
  [[nodiscard]] std::string text() const {
    return count_ > named_ ? std::format("{}, and {} more", text_, count_ - named_) : text_;
  }

 private:
  std::string text_;
  std::size_t count_ = 0, named_ = 0;
};
}  // namespace

std::string Machine::not_stopped() const {
  RankList ranks;
  for_each_member([&](const wire::Member& member, const PodView& pod) {
    if (!pod.status || pod.status->phase != RankPhase::kStopped) ranks.add(member, pod);
  });
  return ranks.text();
}

std::string Machine::not_running() const {
  RankList ranks;
  for_each_member([&](const wire::Member& member, const PodView& pod) {
    if (!pod.answers() || pod.status->phase != RankPhase::kRunning) ranks.add(member, pod);
  });
  return ranks.text();
}

std::string Machine::blocked() const {
  std::string text;
  for_each_member([&](const wire::Member& member, const PodView& pod) {
    if (pod.status && !pod.status->blocked_reason.empty())
      text += std::format("{}rank {}: {}", text.empty() ? "" : ", ", member.rank, pod.status->blocked_reason);
  });
  return text.empty() ? "no rank reached it" : text;
}

}  // namespace bsp::migrate
