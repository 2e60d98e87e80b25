#include "sidecar/agent/program.h"

#include "sidecar/ring/ring_access.h"

namespace bsp::sidecar {

void Program::apply(const control::Message& message, std::uint64_t now_ns) {
  const std::string& verb = message.verb;
  auto take_exit = [&] {
    state = control::kStateExited;
    exit_code = static_cast<int>(message.number("code", -1));
    exit_signal = static_cast<int>(message.number("signal", 0));
    exit_message = message.text("message");
    continuing.reset();
  };
  if (verb == control::kHello) {
    init_connected = true;
    uid = static_cast<uid_t>(message.number("uid", 0));
    gid = static_cast<gid_t>(message.number("gid", 0));
    pid = message.number("pid", 0);
    state = message.text("state");
    if (state == control::kStateExited) take_exit();
    if (stopped() && stopped_ns == 0) stopped_ns = now_ns;
  } else if (verb == control::kRunning) {
    state = control::kStateRunning;
    pid = message.number("pid", pid);
  } else if (verb == control::kStopped) {
    state = control::kStateStopped;
    pid = message.number("pid", pid);
    stopped_ns = now_ns;
    continuing.reset();
  } else if (verb == control::kExited) {
    take_exit();
  } else if (verb == control::kDumping) {
    state = control::kStateDumping;
  } else if (verb == control::kDumped) {
    state = control::kStateDumped;
  } else if (verb == control::kDumpFailed) {
    if (!exited()) state = control::kStateStopped;
  } else if (verb == control::kRestored) {
    state = control::kStateRestored;
    pid = message.number("pid", pid);
  } else if (verb == control::kThrottled) {
    throttle.note(static_cast<std::uint64_t>(message.number("ns", 0)), now_ns);
  } else if (verb == control::kRestoreFailed || verb == control::kDiscarded) {
    if (verb == control::kRestoreFailed || state == control::kStateRestored || state == control::kStateRestoring)
      state = control::kStateWaiting;
  }
}

bool Program::stopped() const {
  return state == control::kStateStopped || state == control::kStateDumping || state == control::kStateDumped ||
         state == control::kStateRestored;
}

bool Program::stopped_at_gate(const bsp_ring& ring) const {
  if (!stopped()) return false;
  // A program may stop itself for reasons of its own; only one that has closed its epoch is ours. A
  // restored one has, by construction, and its new ring knows nothing yet.
  return state != control::kStateStopped || BSP_RING_LOAD(ring.state) == BSP_RANK_CLOSING;
}

wire::RankPhase phase_of(const Program& program, const bsp_ring& ring) {
  using wire::RankPhase;
  if (program.exited()) return RankPhase::kExited;
  if (program.stopped_at_gate(ring)) return RankPhase::kStopped;
  if (program.state == control::kStateWaiting || program.state == control::kStateRestoring) return RankPhase::kWaiting;
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
      return program.state.empty() ? RankPhase::kWaiting : RankPhase::kStarting;
  }
}

}  // namespace bsp::sidecar
