// One seat of a pod of the simulated cluster: the process in it, and what the pod's sidecar does for it: it answers the
// verbs of crds/wire.h as the real one does. tests/unit/sidecar/simulated_test.cc holds one against the other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "crds/seat.h"
#include "crds/wire.h"

namespace bsp::simulated {

enum class Process {
  kNone,      // a target that waits
  kStarting,  // runs, MPI_Init not reached
  kRunning,   // in an open epoch, or opening it
  kStopped,   // at a gate
  kRestored,  // a copy that has never been continued
  kEnded,
};

enum class Gate { kNone, kArmed, kCommitted, kDropping };  // BSP_GATE_… of the ring

// Its CPU counts instructions.
inline wire::RankStatus counting() {
  wire::RankStatus status;
  status.instructions_measured = true;
  return status;
}

struct Pod {
  // --- The pod, as the API shows it ---
  std::string name, uid;
  std::uint32_t local = 0;  // of its seats
  std::uint32_t seats = 1;  // of the pod
  std::uint32_t rank = 0;
  bool target = false;
  int up_at = 0;          // tick from which it has an address, a sidecar and a bsp-init
  int gone_at = -1;       // deleted: tick at which the object goes
  int silent_until = 0;   // the sidecar does not answer the operator before this tick
  int cut_off_until = 0;  // nor anyone else, and its program reaches no other
  // --- Its process ---
  Process process = Process::kNone;
  bool opening = false;           // of an epoch, by MPI; or sent SIGCONT for one, which it hasn't entered yet
  std::uint64_t entering = 0;     // the epoch that it enters …
  int enters_at = -1;             // … when it executes its first instructions
  bool dies_at_once = false;      // at the first of them
  bool hangs_in_opening = false;  // while the others come through
  int stop_at = -1;               // it closes its epoch until then
  bool restored_from_set = false;
  bool criu_fails = false;    // is killed at its next dump or restore
  bool leaves_files = false;  // when its rank leaves, so that the container ends
  // --- Its sidecar ---
  Gate gate = Gate::kNone;
  std::uint64_t gate_dropped = 0;  // superstep of the gate that the ranks dropped last
  wire::Token followed;
  std::optional<wire::Token> gate_over;
  bool heeds_tokens = true;   // as an older sidecar does not
  bool forgetful = false;     // as one that is restarted between an order and its execution
  nlohmann::json order;       // `send` of the committed gate; null: none
  nlohmann::json save_order;  // `save` of it; null: none
  std::string receives_from;
  bool restores = false;                               // what it receives, without being asked again
  int transfer_at = -1;                                // the next phase of its transfer
  std::uint64_t saved_superstep = 0, saved_epoch = 0;  // of the image that is in memory
  int save_at = -1;                                    // the next phase of its part of a checkpoint set
  std::uint64_t save_base = 0;                         // set that the image in memory may build on
  std::uint64_t known_base = 0;                        // set whose image of the rank its sidecar has stored and knows
  bool storage_fails = false;                          // answers each write with an error
  std::string restore_fails = {};                      // by what criu says then, and nobody ends it
  bool storage_hangs = false;                          // answers none
  std::map<std::uint64_t, std::shared_ptr<const wire::EpochPlan>> prepared;
  wire::RankStatus status = counting();

  [[nodiscard]] Seat seat() const { return {name, local}; }
  [[nodiscard]] bool computes() const { return process == Process::kStarting || process == Process::kRunning; }
  [[nodiscard]] bool answers(int tick) const { return gone_at < 0 && tick >= up_at && tick >= silent_until; }
};

// What happens to the process by a verb that was accepted; its duration is the cluster's.
enum class Effect { kNone, kContinues, kDumps, kRestores, kSaves, kLoads, kEnds };

struct Answer {
  Result<nlohmann::json> result;
  Effect effect = Effect::kNone;
};

// `plan`: what the fields of prepareEpoch hold, if they have been read before.
Answer answer(Pod& pod, std::string_view verb, const nlohmann::json& fields,
              const std::shared_ptr<const wire::EpochPlan>& plan = nullptr);

// Begins the transfer that the fields of `send` describe.
void start_dump(Pod& pod, const nlohmann::json& send);
void clear_gate(Pod& pod);
// Begins the dump that the fields of `save` describe; false: it is under way, or over.
bool start_save(Pod& pod, const nlohmann::json& save);

}  // namespace bsp::simulated
