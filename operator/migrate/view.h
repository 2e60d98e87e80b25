// What step() sees: pods as the API shows them, and what their sidecars last said.
//
// The shell builds a new one for every step. Nothing in it is needed after a restart: a fresh operator
// asks the sidecars again, and every verb may be repeated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/core/clock.h"
#include "crds/rankmigration.h"
#include "crds/seat.h"
#include "crds/wire.h"
#include "operator/migrate/action.h"

namespace bsp::migrate {

struct ArmAnswer {
  std::uint64_t superstep = 0;
  std::uint64_t completed = 0;
  bool late = false;
};

// What a sidecar has said, and what it answered to verbs.
struct SidecarView {
  std::optional<wire::RankStatus> status;  // the newest; nullopt: it has never answered
  SteadyTime phase_since{};                // when status.phase was first seen
  SteadyTime unreachable_since{};          // SteadyTime{}: it answers, or never did
  std::uint64_t completed = 0;             // newest superstep known, from statuses and reports
  SteadyTime completed_at{};               // when that was reported; SteadyTime{}: not known
  std::optional<ArmAnswer> armed;          // its answer to armGate of the wave's current gate
  // The number of the last verb of each kind that was answered with ok: a wave has one gate at a time.
  std::map<ActionKind, std::uint64_t> done;
  std::string refused;  // "send: …": the last final error answered to a verb of this wave

  [[nodiscard]] bool has_done(ActionKind kind, std::uint64_t number) const {
    const auto last = done.find(kind);
    return last != done.end() && last->second == number;
  }
  [[nodiscard]] bool answers() const { return status && unreachable_since == SteadyTime{}; }
};

void note_status(SidecarView& sidecar, wire::RankStatus status, SteadyTime now);
// False: refused for good.
bool note_answer(SidecarView& sidecar, const Action& action, const Result<nlohmann::json>& answer);

// A seat: the same with what the API says of its container and pod.
struct SeatView : SidecarView {
  bool exists = false;          // its pod does, in the API
  bool deleting = false;        // has a deletionTimestamp
  bool ended = false;           // its app container ended, or can't be started; see message
  std::string message;          // the kubelet's, about that
  std::string sidecar_failure;  // why the kubelet restarted its sidecar; "": it did not
  std::string pending;          // why it does not run yet, in the words of the API server, scheduler or kubelet
  std::string uid;
  std::string address;     // ip:port of the sidecar, "" until there is one
  std::string gone;        // why its rank counts as gone though the pod exists (reconcile/silence.h); "": it does not
  bool uncertain = false;  // its node does not answer, so nothing will say when its program has ended

  // The copy of the rank in it has certainly ended: its container has, it says so itself, or the pod is gone.
  [[nodiscard]] bool has_ended() const {
    return !exists || ended || (status && status->phase == wire::RankPhase::kExited);
  }
  // Of such an end the epoch isn't known where only the node reports it. But a stopped rank can't end well, so this one has
  // gone on since.
  [[nodiscard]] bool ended_well() const {
    return status && status->phase == wire::RankPhase::kExited && status->exit_code == 0 && status->exit_signal == 0;
  }
  // It can hold no process: it is gone or going, or its app container has ended.
  [[nodiscard]] bool lost() const { return !exists || deleting || ended; }
};

struct View {
  SteadyTime now{};
  std::map<crds::MigrationPhase, SteadyTime> since;  // contact.h; a phase that is entered in this very step is missing
  wire::EpochPlan epoch;                             // BSPJob.status.epoch
  std::map<Seat, SeatView> seats;                    // of every pod of the job
  double superstep_seconds = 0;                      // recent mean; 0: not known
  double bytes_per_second = 0;    // of the slowest of the wave's moves, as far as measured; 0: not known
  double round_trip_seconds = 0;  // operator to sidecar and back
  std::string cancelled;          // why the wave is to be given up (job deleted, …); "": it is not
  bool job_ends = false;          // because the job is to be suspended or its deadline is over
};

}  // namespace bsp::migrate
