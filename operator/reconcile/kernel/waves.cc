#include "operator/reconcile/kernel/waves.h"

#include <algorithm>
#include <format>
#include <set>
#include <string_view>

#include "operator/observe/calibration.h"

namespace bsp::reconcile {

using migrate::ActionKind;

Result<std::optional<migrate::Wave>> stored_wave(const crds::BspJobStatus& status) {
  if (status.wave_state.is_null() || status.wave_state.empty()) return std::nullopt;
  BSP_TRY(auto wave, migrate::wave_from_json(status.wave_state));
  if (status.epoch) BSP_CHECK_OK(migrate::check_wave(wave, *status.epoch));
  return wave;
}

wire::Token newest_token(const crds::BspJobStatus& status, const std::optional<migrate::Wave>& last) {
  if (last && last->number == status.wave) return migrate::token_of(*last);
  return {.wave = status.wave, .epoch = status.epoch ? status.epoch->epoch : 0, .attempt = 0};
}

std::uint32_t waves_seen(const Observed& o) {
  std::uint32_t seen = 0;
  for (const auto& [pod, sidecar] : o.sidecars)
    if (sidecar.status) seen = std::max(seen, sidecar.status->wave);
  return seen;
}

std::string deleted_of(const migrate::Wave& wave, const Observed& o) {
  for (const migrate::Move& move : wave.moves) {
    const crds::RankMigration* m = migration_of(move, o);
    if (m ? m->metadata.deletion_timestamp != Time{} : target_was_made(wave, move, o)) return move.migration;
  }
  return "";
}

double bandwidth_of(const migrate::Wave& wave, const Observed& o) {
  const auto calibration = observe::Calibration::from_status(o.job.status.calibration);
  double most = 0;  // s per byte
  for (const migrate::Move& move : wave.moves)
    most = std::max(
        most, calibration.seconds_per_byte(o.job.status.ranks[move.rank].set, o.job.status.epoch->sets[move.target_set])
                  .value);
  return most > 0 ? 1 / most : 0;
}

namespace {

// `member`: of the committed epoch.
migrate::SeatView seat_view(const Observed& o, const Seat& seat, const PodFacts& facts, bool member) {
  const AppFacts& app = facts.app(seat.local);
  migrate::SeatView view;
  if (const SidecarFacts* sidecar = o.sidecar(seat)) {
    static_cast<migrate::SidecarView&>(view) = *sidecar;
    // A target that never answered is still starting; a rank's sidecar ran before this operator.
    if (!view.status && !member) view.unreachable_since = {};
  }
  view.exists = true;
  view.deleting = facts.deleting;
  view.uncertain = facts.lost;
  // No move waits for an image: the rank runs well where it is. What else delays a container passes within seconds, or
  // ends the move once its target has had its time.
  const bool lacks_image = facts.delayed_by_image && !app.running;
  view.ended = app.cannot_start || lacks_image || (app.ended && app.exit_code != 0);
  view.message = lacks_image           ? facts.start_delay
                 : app.message.empty() ? std::format("its app container ended with code {}", app.exit_code)
                                       : app.message;
  view.pending = facts.unscheduled.empty() ? facts.start_delay : facts.unscheduled;
  if (facts.sidecar_out_of_memory)
    view.sidecar_failure = std::format(
        "the sidecar of {} was killed: out of memory (raise what a LimitRange gives its container; "
        "a target's holds the checkpoint)",
        seat.pod);
  view.uid = facts.uid;
  view.address = facts.address;
  // The sidecar ends with the pod; the node then reports how the program ended.
  if (app.ended && !app.cannot_start) {
    if (!view.status) view.status.emplace();
    if (view.status->phase != wire::RankPhase::kExited) {
      view.status->phase = wire::RankPhase::kExited;
      view.status->exit_signal = app.exit_code > 128 ? app.exit_code - 128 : 0;
      view.status->exit_code = view.status->exit_signal ? -1 : app.exit_code;
    }
    view.unreachable_since = SteadyTime{};
  }
  return view;
}

}  // namespace

migrate::View view_of(const Observed& o, const Silence& silence, const std::string& cancelled) {
  migrate::View view;
  view.now = o.steady;
  view.since = o.wave_since;
  if (o.job.status.epoch) view.epoch = *o.job.status.epoch;
  view.superstep_seconds = o.superstep_seconds;
  view.round_trip_seconds = o.round_trip_seconds;
  view.cancelled = cancelled;
  for (const auto& [name, why] : o.not_created) view.seats[{name, 0}].pending = why.message;
  std::set<Seat> members;
  for (const wire::Member& member : view.epoch.members) members.insert(seat_of(member));
  for (const auto& [name, facts] : o.pods)
    for (std::uint32_t local = 0; local < facts.apps.size(); ++local) {
      const Seat seat{name, local};
      view.seats[seat] = seat_view(o, seat, facts, members.contains(seat));
    }
  for (const Silence::Rank& rank : silence.ranks)
    if (rank.gone) view.seats[rank.seat].gone = rank.text;
  return view;
}

bool wants_its_node(const std::string& migration, const Observed& o) {
  return std::ranges::any_of(o.migrations, [&](const crds::RankMigration& m) {
    return m.metadata.name == migration && !m.spec.target_node.empty() && m.spec.target_node != crds::kAnyOtherNode;
  });
}

namespace {

// With room for another pod it is a node of the target's Set like any other, cordoned or not if the template tolerates
// that. Between Sets the Set keeps the target off; not all autoscalers understand a node's name in an affinity.
std::string node_to_leave(const migrate::Move& move, const Observed& o) {
  if (move.source_set != move.target_set) return "";
  const auto source = o.pods.find(move.source_pod);
  return source != o.pods.end() && !source->second.node.empty() ? source->second.node : move.source_node;
}

std::string group_of_target(const migrate::Move& move, const Observed& o) {
  const auto source = o.pods.find(move.source_pod);
  const bool joins = starts_by_scheduler(o) && targets_join_group(o.job);
  return joins && source != o.pods.end() ? source->second.pod_group : "";
}
// nullopt: it is being made, or the RankMigration of one of its ranks is being written (deleted_of()).
std::optional<PodRequest> target_pod(const migrate::Wave& wave, const std::string& pod, const Observed& o) {
  const migrate::Move* first = nullptr;  // which it is named after
  std::vector<std::uint32_t> beside;     // its seats were given in the order of moves
  for (const migrate::Move& move : wave.moves) {
    if (move.target_pod != pod) continue;
    if (!migration_of(move, o)) return std::nullopt;
    if (move.target_local == 0)
      first = &move;
    else
      beside.push_back(move.rank);
  }
  if (!first || o.being_made.contains(pod)) return std::nullopt;
  const bool pinned = wants_its_node(first->migration, o);
  return PodRequest{.rank = first->rank,
                    .generation = o.job.status.ranks[first->rank].generation - 1,
                    .attempt = o.job.status.attempt,
                    .set = o.job.status.epoch->sets[first->target_set],
                    .node = first->target_node,
                    .pinned = pinned,
                    .not_on = pinned ? "" : node_to_leave(*first, o),
                    .target = true,
                    .migration = first->migration,
                    .pod_group = group_of_target(*first, o),
                    .beside = std::move(beside),
                    .runtime_image = runtime_image_of(o)};
}
}  // namespace

void add_actions(const migrate::Wave& wave, const std::vector<migrate::Action>& actions, const Observed& o,
                 Work& work) {
  for (const migrate::Action& action : actions) {
    switch (action.kind) {
      case ActionKind::kCreateTargetPod:
        if (auto request = target_pod(wave, action.seat.pod, o)) work.create_pods.push_back(std::move(*request));
        break;
      case ActionKind::kDeletePod:
        work.delete_pods.push_back(action.seat.pod);
        break;
      case ActionKind::kReceive:
        // As a pod is made: so that a RankMigration that is missing afterwards was deleted.
        if (const migrate::Move& move = wave.moves[*action.move]; !move.into_free_seat || migration_of(move, o))
          work.actions.push_back(action);
        break;
      case ActionKind::kPrepareEpoch:
      case ActionKind::kOpenEpoch:
      case ActionKind::kArmGate:
      case ActionKind::kCommitGate:
      case ActionKind::kCancelGate:
      case ActionKind::kSend:
      case ActionKind::kRestore:
      case ActionKind::kDiscard:
      case ActionKind::kSave:
      case ActionKind::kLoad:
      case ActionKind::kKeepSets:
      case ActionKind::kKill:
        work.actions.push_back(action);
        break;
    }
  }
}

bool stands_still(const Observed& o) {
  return o.job.status.epoch && std::ranges::any_of(o.job.status.epoch->members, [&](const wire::Member& m) {
           const wire::RankStatus* said = o.said(seat_of(m));
           return said && said->phase == wire::RankPhase::kStopped;
         });
}

void place_ranks(const migrate::Wave& wave, const Observed& o, crds::BspJobStatus& status) {
  for (const migrate::Move& move : wave.moves) {
    const wire::Member& member = status.epoch->members[move.rank];
    crds::RankPlace& place = status.ranks[move.rank];
    place.pod = member.pod;
    place.local = member.seat;
    place.set = status.epoch->sets[member.set];
    const auto pod = o.pods.find(member.pod);
    const bool placed = pod != o.pods.end() && !pod->second.node.empty();
    place.node = placed || member.pod != move.target_pod ? (placed ? pod->second.node : "") : move.target_node;
  }
}

}  // namespace bsp::reconcile
