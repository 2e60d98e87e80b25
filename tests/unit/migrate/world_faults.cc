// What strikes the simulated world.
#include <format>

#include "tests/unit/migrate/world.h"

namespace bsp::migrate::sim {

using simulated::Process;

std::string_view to_string(Victim victim) {
  constexpr std::string_view names[] = {"none",
                                        "program",
                                        "init",
                                        "criu-dump",
                                        "criu-restore",
                                        "source-sidecar",
                                        "target-sidecar",
                                        "staying-sidecar",
                                        "source-pod",
                                        "target-pod",
                                        "copy",
                                        "target-seat",
                                        "staying-program",
                                        "staying-pod",
                                        "operator",
                                        "operator-away",
                                        "api-server-pause",
                                        "clock-forward",
                                        "clock-back",
                                        "storage-fails",
                                        "storage-hangs"};
  return names[static_cast<int>(victim)];
}

void World::kill_program(Pod* p) {
  if (p && p->process != Process::kEnded) end(*p, -1, 9, true);
}

// The container ends with it, and the node says so.
void World::kill_init(Pod* p) {
  if (!p) return;
  p->init_died = true;
  if (p->process != Process::kNone) p->process = Process::kEnded;
  p->opening = false;
  p->stop_at = -1;
}

void World::lose_pod(const std::string& name) {
  std::erase_if(pods_, [&](const auto& entry) { return entry.first.pod == name; });
}

void World::end_operator(int away_ms) {
  ++operator_life_;
  operator_up_at_ = tick_ + away_ms;
  known_.clear();
  sent_at_.clear();
  contact_ = {};
  // What it had sent arrives, late or at once, or is lost with its connections.
  std::erase_if(messages_, [&](const Message&) { return random(0, 1) == 0; });
  for (Message& m : messages_)
    if (random(0, 1) == 0) m.at += random(1, 3000);
}

void World::strike() {
  if (struck_ || s_.victim == Victim::kNone || wave_.phase != s_.phase || tick_ < phase_at_ + s_.delay_ms) return;
  Pod* source = pod(s_.checkpoint ? seat_of(epoch_.members.front()) : wave_.moves[0].source());
  Pod* target = s_.checkpoint ? nullptr : pod(wave_.moves[0].target());
  struck_ = true;
  struck_at_ = tick_;
  note(std::format("STRIKE {}", to_string(s_.victim)));
  Pod* staying = pod(seat_of(epoch_.members.back()));
  Pod* rank0 = running(0) ? running(0) : source;
  switch (s_.victim) {
    case Victim::kNone:
      break;
    case Victim::kProgram:
      kill_program(rank0);
      break;
    case Victim::kInit:
      kill_init(rank0);
      break;
    case Victim::kCriuDump:
      if (source) source->criu_fails = true;
      break;
    case Victim::kCriuRestore:
      if (target) target->criu_fails = true;
      break;
    case Victim::kSourceSidecar:
      if (source) restart_sidecar(source->name, random(50, 2000));
      break;
    case Victim::kTargetSidecar:
      if (target) restart_sidecar(target->name, random(50, 2000));
      break;
    case Victim::kStayingSidecar:
      if (staying) restart_sidecar(staying->name, random(50, 2000));
      break;
    case Victim::kSourcePod:
      if (source) lose_pod(source->name);
      break;
    case Victim::kTargetPod:
      if (target) lose_pod(target->name);
      break;
    case Victim::kTargetSeat:
      kill_init(pod(wave_.moves.back().target()));
      break;
    case Victim::kCopy:
      if (target) target->dies_at_once = true;
      break;
    case Victim::kStayingProgram:
      kill_program(staying);
      break;
    case Victim::kStayingPod:
      lose_pod(epoch_.members.back().pod);
      break;
    case Victim::kOperator:
      end_operator(random(50, 500));
      break;
    case Victim::kOperatorAway:
      end_operator(60'000);
      clock_is_off_ = std::chrono::minutes(random(0, 1) == 0 ? -5 : 5);
      break;
    case Victim::kApiServerPause:
      operator_up_at_ = tick_ + 45'000;
      break;
    case Victim::kClockForward:
      clock_is_off_ = std::chrono::hours(1);
      break;
    case Victim::kClockBack:
      clock_is_off_ = -std::chrono::hours(1);
      break;
    case Victim::kStorageFails:
      for (auto& [name, p] : pods_) p.storage_fails = true;
      break;
    case Victim::kStorageHangs:
      for (auto& [name, p] : pods_) p.storage_hangs = true;
      break;
  }
  if (s_.operator_dies_with_it) end_operator(random(50, 500));
}

}  // namespace bsp::migrate::sim
