#include "sidecar/agent/program.h"

#include "sidecar/ring/ring_access.h"

namespace bsp::sidecar {

using control::ProgramState;

void Program::exited_with(int code, int signal, const std::string& message) {
  state = ProgramState::kExited;
  exit_code = code;
  exit_signal = signal;
  exit_message = message;
  continuing.reset();
}

void Program::apply(const control::FromInit& message, std::uint64_t now_ns) {
  // A message may omit the PID.
  const auto has = [this](ProgramState next, std::int64_t process) {
    state = next;
    if (process != 0) pid = process;
  };
  std::visit(control::Handlers{
                 [&](const control::Hello& m) {
                   init_connected = true;
                   uid = m.uid;
                   gid = m.gid;
                   pid = m.pid;
                   state = m.state;
                   features = m.features;
                   awaits_start = m.mode == control::Mode::kRun && m.state == ProgramState::kWaiting;
                   if (exited()) exited_with(m.code, m.signal, m.message);
                   if (stopped() && stopped_ns == 0) stopped_ns = now_ns;
                 },
                 [&](const control::Running& m) { has(ProgramState::kRunning, m.pid); },
                 [&](const control::Stopped& m) {
                   has(ProgramState::kStopped, m.pid);
                   stopped_ns = now_ns;
                   continuing.reset();
                 },
                 [&](const control::Exited& m) { exited_with(m.code, m.signal, m.message); },
                 [&](const control::Dumping&) { state = ProgramState::kDumping; },
                 [&](const control::Dumped&) { state = ProgramState::kDumped; },
                 [&](const control::DumpFailed&) {
                   if (!exited()) state = ProgramState::kStopped;
                 },
                 [&](const control::Restored& m) {
                   has(ProgramState::kRestored, m.pid);
                   features = m.features;
                 },
                 [&](const control::RestoreFailed&) { state = ProgramState::kWaiting; },
                 [&](const control::Discarded&) {
                   if (state == ProgramState::kRestored || state == ProgramState::kRestoring)
                     state = ProgramState::kWaiting;
                 },
                 [&](const control::Vacated&) {
                   Program free;  // nothing is left of the last one
                   free.init_connected = init_connected;
                   free.state = ProgramState::kWaiting;
                   free.uid = uid;
                   free.gid = gid;
                   *this = std::move(free);
                 },
                 [&](const control::Throttled& m) { throttle.note(m.ns, now_ns); },
             },
             message);
}

bool Program::stopped() const {
  return state == ProgramState::kStopped || state == ProgramState::kDumping || state == ProgramState::kDumped ||
         state == ProgramState::kRestored;
}

bool Program::stopped_at_gate(const bsp_ring& ring) const {
  if (!stopped()) return false;
  // A program may stop itself for its own reasons; only one that has closed its epoch is stopped at a gate. A
  // restored one has, by construction, and its new ring doesn't show it yet.
  return state != ProgramState::kStopped || BSP_RING_LOAD(ring.state) == BSP_RANK_CLOSING;
}

wire::RankPhase phase_of(const Program& program, const bsp_ring& ring) {
  using wire::RankPhase;
  if (program.exited()) return RankPhase::kExited;
  if (program.stopped_at_gate(ring)) return RankPhase::kStopped;
  if (program.state == ProgramState::kWaiting || program.state == ProgramState::kRestoring) return RankPhase::kWaiting;
  std::uint32_t state = BSP_RING_LOAD(ring.state);
  if (program.continuing && (state == BSP_RANK_STARTING || state == BSP_RANK_CLOSING)) return RankPhase::kOpening;
  switch (state) {
    case BSP_RANK_OPENING:
      return RankPhase::kOpening;
    case BSP_RANK_RUNNING:
      return RankPhase::kRunning;
    case BSP_RANK_AT_GATE:
      return RankPhase::kAtGate;
    case BSP_RANK_CLOSING:
      return RankPhase::kClosing;
    case BSP_RANK_FINALIZED:
      return RankPhase::kFinalized;
    default:
      return !program.state ? RankPhase::kWaiting : RankPhase::kStarting;
  }
}

}  // namespace bsp::sidecar
