// A wave: the moves that share one pause, and everything about them that must survive the operator.
//
// It is stored whole in BSPJob.status.waveState beside status.epoch, so that a fresh operator goes on
// from any point. One writer: the operator, through step.h. Its phases are those of RankMigration, and
// every migration of the wave shows the wave's phase. Times: CLOCK_REALTIME of whichever operator entered the phase;
// they are for people, and limits are counted by contact.h.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/core/ids.h"
#include "crds/rankmigration.h"
#include "crds/seat.h"
#include "crds/wire.h"

namespace bsp::migrate {

using Phase = crds::MigrationPhase;

// Where the gate (sidecar/ring/ring.h) stands. Stored before any sidecar is asked, so that
// "committed" here is the decision that every sidecar must follow, whatever dies meanwhile.
enum class GateState {
  kNone,
  kArmed,       // sidecars are being asked to hold their ranks at `superstep`
  kCommitted,   // none was late: every rank closes its epoch at the first edge >= superstep that it can
  kCancelling,  // armed too late somewhere: to be cancelled, and another superstep tried
  kDropping,    // committed, then given up: the ranks agree to drop it, unless they have stopped already
};
constexpr auto names_of(Of<GateState>) {
  return std::to_array<std::string_view>({"None", "Armed", "Committed", "Cancelling", "Dropping"});
}
// What is stored of a wave is written whole.
template <class T>
constexpr void written_whole(Of<T>) {}

struct Gate {
  GateState state = GateState::kNone;
  std::uint64_t superstep = 0;  // P
  std::uint32_t attempt = 0;    // gates tried so far; each one is set further ahead
  bool operator==(const Gate&) const = default;
};
constexpr void fields_of(Of<Gate>, auto&& v) {
  v("state", &Gate::state, kRequired);
  v("superstep", &Gate::superstep, kRequired);
  v("attempt", &Gate::attempt, kRequired);
}

struct Move {
  std::string migration;  // name of the RankMigration
  std::uint32_t rank = 0;
  std::string source_pod;
  std::string source_uid;  // of the epoch that the rank leaves, so that a later one can name it again
  std::string source_address;
  std::uint32_t source_set = 0;
  std::string target_pod;        // <job>-r<rank>-g<generation>
  std::string target_uid;        // "" until the pod is there; never changes afterwards
  std::string target_address;    // ip:port, with it
  std::uint32_t target_set = 0;  // index into the plan's sets
  std::string target_node;
  double predicted_gain_seconds = 0;  // over the horizon; 0: none was predicted
  std::string source_node{};          // for events; the source pod may be gone when the wave ends
  std::uint32_t source_local = 0;     // of the seats in these pods
  std::uint32_t target_local = 0;
  bool into_free_seat =
      false;  // the target is a seat that another rank has left: its pod was there, and has other ranks

  [[nodiscard]] Seat source() const { return {source_pod, source_local}; }
  [[nodiscard]] Seat target() const { return {target_pod, target_local}; }
  bool operator==(const Move&) const = default;
};
constexpr void fields_of(Of<Move>, auto&& v) {
  v("migration", &Move::migration, kRequired);
  v("rank", &Move::rank, kRequired);
  v("sourcePod", &Move::source_pod, kRequired);
  // Not stored by an older operator: then the source can't be named again.
  v("sourceUid", &Move::source_uid);
  v("sourceAddress", &Move::source_address);
  v("sourceSet", &Move::source_set);
  v("sourceNode", &Move::source_node, kRare);
  v("sourceSeat", &Move::source_local, kRare);
  v("targetPod", &Move::target_pod, kRequired);
  v("targetSeat", &Move::target_local, kRare);
  v("intoFreeSeat", &Move::into_free_seat, kRare);
  v("targetUid", &Move::target_uid, kRequired);
  v("targetAddress", &Move::target_address, kRequired);
  v("targetSet", &Move::target_set, kRequired);
  v("targetNode", &Move::target_node, kRequired);
  v("predictedGainSeconds", &Move::predicted_gain_seconds, kRare);
}

// The checkpoint set that a wave makes. Nobody moves in it: each rank is dumped at the gate, and the next epoch names the
// same pods. Its images reach the storage after the wave, while the ranks compute.
struct Checkpoint {
  std::uint64_t set = 0;  // its id; none is used twice
  std::uint32_t attempt = 0;
  std::uint64_t base = 0;  // the set that its images may build on; 0: they have to be whole
  bool operator==(const Checkpoint&) const = default;
};
constexpr void fields_of(Of<Checkpoint>, auto&& v) {
  v("set", &Checkpoint::set, kRequired);
  v("attempt", &Checkpoint::attempt, kRequired);
  v("base", &Checkpoint::base, kRare);
}

struct Wave {
  std::uint32_t number = 0;
  Phase phase = Phase::kPreparing;
  std::vector<crds::PhaseTime> times;    // every phase entered, in order
  std::uint64_t base_epoch = 0;          // committed when the wave began
  std::uint64_t next_epoch = 0;          // what it wants to commit
  std::uint64_t rollback_epoch = 0;      // what it commits instead, or afterwards, if it fails after the pause began
  bool rollback_committed = false;       // status.epoch is the rollback epoch
  std::vector<Move> moves;               // none if it makes a checkpoint set
  std::optional<Checkpoint> checkpoint;  // not set if it moves ranks
  Gate gate;
  std::string reason;                      // CamelCase, of a rollback or failure
  std::string message;                     // the same for people
  std::string delay;                       // why the phase takes longer than expected, once it does
  double late_seconds = 0;                 // how long the phase had lasted that exceeded its limit
  std::optional<std::uint32_t> lost_rank;  // kFailed: the rank whose process is gone, if that is the reason
  crds::PauseParts pause;                  // filled at the end
  std::vector<std::uint64_t> bytes;        // per move, filled at the end
  std::vector<double> transfer_ms;         // the same; 0: not known. Empty in a wave of an older operator
  // What the moves were to add to the price of an hour when they were decided; not set: that didn't matter.
  std::optional<double> added_an_hour;

  [[nodiscard]] Time entered(Phase p) const;  // when the phase began last; Time{} if never
};
constexpr void fields_of(Of<Wave>, auto&& v) {
  v("number", &Wave::number, kRequired);
  v("phase", &Wave::phase, kRequired);
  v("times", &Wave::times, kRequired);
  v("baseEpoch", &Wave::base_epoch, kRequired);
  v("nextEpoch", &Wave::next_epoch, kRequired);
  v("rollbackEpoch", &Wave::rollback_epoch, kRequired);
  v("rollbackCommitted", &Wave::rollback_committed, kRequired);
  v("moves", &Wave::moves, kRequired);
  v("checkpoint", &Wave::checkpoint);
  v("gate", &Wave::gate, kRequired);
  v("reason", &Wave::reason, kRequired);
  v("message", &Wave::message, kRequired);
  v("delay", &Wave::delay);
  v("lateSeconds", &Wave::late_seconds);
  v("lostRank", &Wave::lost_rank);
  v("pause", &Wave::pause, kRequired);
  v("bytes", &Wave::bytes, kRequired);
  v("transferMs", &Wave::transfer_ms);
  v("addedAnHour", &Wave::added_an_hour);
}

// Of the verbs that follow from it as it is stored.
wire::Token token_of(const Wave& wave);

// Nothing is left to decide. Pods that are no longer needed are still to be deleted.
constexpr bool is_finished(const Wave& wave) { return crds::is_finished(wave.phase); }

// The drawing of README.md as a function; step() aborts on anything else.
bool is_valid_transition(Phase from, Phase to);

// The plan that the wave wants to commit: base with the moved ranks' pods replaced. Targets known only.
wire::EpochPlan next_plan(const Wave& wave, const wire::EpochPlan& base);
// The plan that undoes the pause: the pods from which the ranks were to move, under the rollback epoch's number.
// `base` is the epoch before the wave or, where the wave's own was committed already, that one.
wire::EpochPlan rollback_plan(const Wave& wave, const wire::EpochPlan& base);

nlohmann::json to_json(const Wave& wave);
Result<Wave> wave_from_json(const nlohmann::json& j);
// A stored wave may be outdated or edited by hand: whether it can belong to a job in that epoch. The error names the field.
Result<void> check_wave(const Wave& wave, const wire::EpochPlan& epoch);

}  // namespace bsp::migrate
