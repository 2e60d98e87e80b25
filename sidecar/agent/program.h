// What the sidecar knows of the program from bsp-init's messages and from the ring, and the phase that follows from
// both.
//
// bsp-init knows whether the process exists, is stopped or has ended; the shim (through the ring) knows what it is
// doing while it runs. Where they disagree the later one wins: a process that init has continued but whose shim has
// not reported yet is opening its epoch.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "crds/wire.h"
#include "sidecar/agent/throttle_share.h"
#include "sidecar/control/messages.h"
#include "sidecar/ring/ring.h"

namespace bsp::sidecar {

struct Program {
  bool init_connected = false;
  std::string unfit;  // why this sidecar can't work with its bsp-init; "": it can, or there was none yet
  std::optional<control::ProgramState> state;  // none before the first hello
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::int64_t pid = 0;
  std::uint64_t features = 0;  // RankStatus::program_features
  bool awaits_start = false;   // bsp-init holds it back until it is told with which features it starts
  int exit_code = -1;
  int exit_signal = 0;
  std::string exit_message;
  std::uint64_t stopped_ns = 0;
  // `continue` was sent for this epoch and the shim has not opened it yet.
  std::optional<std::uint64_t> continuing;
  ThrottleShare throttle;

  // Applies one message from bsp-init; now_ns is CLOCK_REALTIME.
  void apply(const control::FromInit& message, std::uint64_t now_ns);

  [[nodiscard]] bool exited() const { return state == control::ProgramState::kExited; }
  void exited_with(int code, int signal, const std::string& message);
  // A process exists and is stopped, for any reason.
  [[nodiscard]] bool stopped() const;
  // Stopped because it closed its epoch at a gate (or was restored so): safe to dump or to continue.
  [[nodiscard]] bool stopped_at_gate(const bsp_ring& ring) const;
};

wire::RankPhase phase_of(const Program& program, const bsp_ring& ring);

}  // namespace bsp::sidecar
