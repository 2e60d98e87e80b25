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
    if (m ? m->metadata.deletion_timestamp != Time{} : target_was_made(move, o)) return move.migration;
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

migrate::View view_of(const Observed& o, const Silence& silence, const std::string& cancelled) {
  migrate::View view;
  view.now = o.steady;
  view.since = o.wave_since;
  if (o.job.status.epoch) view.epoch = *o.job.status.epoch;
  view.superstep_seconds = o.superstep_seconds;
  view.round_trip_seconds = o.round_trip_seconds;
  view.cancelled = cancelled;
  for (const auto& [name, why] : o.not_created) view.pods[name].pending = why.message;
  std::set<std::string_view> members;
  for (const wire::Member& member : view.epoch.members) members.insert(member.pod);
  for (const auto& [name, facts] : o.pods) {
    migrate::PodView& pod = view.pods[name];
    pod.exists = true;
    pod.deleting = facts.deleting;
    pod.uncertain = facts.lost;
    // No move waits for an image: the rank runs well where it is. What else delays a container passes within seconds, or
    // ends the move once its target has had its time.
    const bool lacks_image = facts.delayed_by_image && !facts.app_running;
    pod.ended = facts.cannot_start || lacks_image || (facts.app_ended && facts.app_exit_code != 0);
    pod.message = lacks_image                 ? facts.start_delay
                  : facts.app_message.empty() ? std::format("its app container ended with code {}", facts.app_exit_code)
                                              : facts.app_message;
    pod.pending = facts.unscheduled.empty() ? facts.start_delay : facts.unscheduled;
    if (facts.sidecar_out_of_memory)
      pod.sidecar_failure = std::format(
          "the sidecar of {} was killed: out of memory (raise what a LimitRange gives its container; "
          "a target's holds the checkpoint)",
          name);
    pod.uid = facts.uid;
    pod.address = facts.address;
    if (const auto it = o.sidecars.find(name); it != o.sidecars.end()) {
      static_cast<migrate::SidecarView&>(pod) = it->second;
      // A target that never answered is still starting; a rank's sidecar ran before this operator.
      if (!pod.status && !members.contains(name)) pod.unreachable_since = {};
    }
    // The sidecar ends with the pod; the node then reports how the program ended.
    if (facts.app_ended && !facts.cannot_start) {
      if (!pod.status) pod.status.emplace();
      if (pod.status->phase != wire::RankPhase::kExited) {
        pod.status->phase = wire::RankPhase::kExited;
        pod.status->exit_signal = facts.app_exit_code > 128 ? facts.app_exit_code - 128 : 0;
        pod.status->exit_code = pod.status->exit_signal ? -1 : facts.app_exit_code;
      }
      pod.unreachable_since = SteadyTime{};
    }
  }
  for (const Silence::Rank& rank : silence.ranks)
    if (rank.gone) view.pods[rank.pod].gone = rank.text;
  return view;
}

namespace {
// A person named the node; the cost model only relies on the capacity of a Set.
bool wants_its_node(const std::string& migration, const Observed& o) {
  return std::ranges::any_of(o.migrations, [&](const crds::RankMigration& m) {
    return m.metadata.name == migration && !m.spec.target_node.empty() && m.spec.target_node != crds::kAnyOtherNode;
  });
}

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
}  // namespace

void add_actions(const migrate::Wave& wave, const std::vector<migrate::Action>& actions, const Observed& o,
                 Work& work) {
  for (const migrate::Action& action : actions) {
    switch (action.kind) {
      case ActionKind::kCreateTargetPod: {
        const migrate::Move& move = wave.moves[*action.move];
        if (!migration_of(move, o)) break;  // it is being written; see deleted_of()
        if (o.being_made.contains(action.pod)) break;
        const std::uint32_t generation = o.job.status.ranks[move.rank].generation - 1;
        const bool pinned = wants_its_node(move.migration, o);
        work.create_pods.push_back({.rank = move.rank,
                                    .generation = generation,
                                    .attempt = o.job.status.attempt,
                                    .set = o.job.status.epoch->sets[move.target_set],
                                    .node = move.target_node,
                                    .pinned = pinned,
                                    .not_on = pinned ? "" : node_to_leave(move, o),
                                    .target = true,
                                    .migration = move.migration,
                                    .pod_group = group_of_target(move, o),
                                    .runtime_image = runtime_image_of(o)});
        break;
      }
      case ActionKind::kDeletePod:
        work.delete_pods.push_back(action.pod);
        break;
      case ActionKind::kPrepareEpoch:
      case ActionKind::kOpenEpoch:
      case ActionKind::kReceive:
      case ActionKind::kArmGate:
      case ActionKind::kCommitGate:
      case ActionKind::kCancelGate:
      case ActionKind::kSend:
      case ActionKind::kRestore:
      case ActionKind::kDiscard:
      case ActionKind::kSave:
      case ActionKind::kLoad:
      case ActionKind::kKeepSets:
        work.actions.push_back(action);
        break;
    }
  }
}

bool stands_still(const Observed& o) {
  return o.job.status.epoch && std::ranges::any_of(o.job.status.epoch->members, [&](const wire::Member& m) {
           const auto it = o.sidecars.find(m.pod);
           return it != o.sidecars.end() && it->second.status && it->second.status->phase == wire::RankPhase::kStopped;
         });
}

void place_ranks(const migrate::Wave& wave, const Observed& o, crds::BspJobStatus& status) {
  for (const migrate::Move& move : wave.moves) {
    const wire::Member& member = status.epoch->members[move.rank];
    crds::RankPlace& place = status.ranks[move.rank];
    place.pod = member.pod;
    place.set = status.epoch->sets[member.set];
    const auto pod = o.pods.find(member.pod);
    const bool placed = pod != o.pods.end() && !pod->second.node.empty();
    place.node = placed || member.pod != move.target_pod ? (placed ? pod->second.node : "") : move.target_node;
  }
}

}  // namespace bsp::reconcile
