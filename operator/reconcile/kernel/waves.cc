#include "operator/reconcile/kernel/waves.h"

#include <algorithm>
#include <format>

#include "base/core/significant.h"
#include "crds/fields.h"
#include "crds/names.h"
#include "operator/observe/calibration.h"
#include "operator/reconcile/kernel/move_memory.h"

namespace bsp::reconcile {

using migrate::ActionKind;
using migrate::Phase;

Result<std::optional<migrate::Wave>> stored_wave(const crds::BspJobStatus& status) {
  if (status.wave_state.is_null() || status.wave_state.empty()) return std::nullopt;
  BSP_TRY(auto wave, migrate::wave_from_json(status.wave_state));
  if (status.epoch) BSP_CHECK_OK(migrate::check_wave(wave, *status.epoch));
  return wave;
}

std::vector<MoveRequest> waiting_requests(const Observed& o) {
  std::vector<MoveRequest> requests;
  for (const crds::RankMigration& m : o.migrations) {
    if (m.status.phase != Phase::kPending || m.status.wave != 0 || m.spec.wave != 0) continue;
    if (m.metadata.deletion_timestamp != Time{}) continue;
    requests.push_back({m.metadata.name, m.spec.rank.value, m.spec.target_set, m.spec.target_node});
  }
  return requests;
}

namespace {

// A request and where it could be met.
struct Candidate {
  const MoveRequest& request;
  const crds::RankPlace* place = nullptr;  // of the rank; null: there is none
  bool named = false;                      // a node is what the request names
  const observe::NodeFacts* node = nullptr;
  const observe::NodeFacts* short_of_memory = nullptr;  // a node with a slot, but not the memory

  [[nodiscard]] std::string where() const {
    return request.node.empty() ? "Set " + request.set : "node " + request.node;
  }
};

// The moves of a wave as they are chosen, one request after the other.
class WaveInMaking {
 public:
  WaveInMaking(const Observed& o, const crds::BspJobStatus& status)
      : o_(o), status_(status), sets_(status.epoch->sets), room_(o), taken_(status.ranks.size()) {
    for (const auto& node : o.nodes) {
      held_[node.name] = node.taken;
      memory_[node.name] = room_.free_memory(node);
    }
    for (const auto& [name, pod] : o.pods) ++held_[pod.node];
  }

  [[nodiscard]] Candidate find(const MoveRequest& request) const {
    Candidate c{.request = request};
    if (request.rank >= status_.ranks.size()) return c;
    c.place = &status_.ranks[request.rank];
    for (const auto& node : o_.nodes) {
      if (request.node.empty() ? node.set != request.set : node.name != request.node) continue;
      c.named = true;
      if (node.cordoned || held_.at(node.name) >= node.slots) continue;
      const bool fits = memory_.at(node.name) >= room_.of(*c.place).both();
      (fits ? c.node : c.short_of_memory) = &node;
      if (fits) break;
    }
    return c;
  }

  // Each says why a request can't be met, or "".
  [[nodiscard]] std::string no_such_rank(const Candidate& c) const {
    if (c.place) return "";
    return std::format("spec.rank: {} is not a rank of this job, which has ranks 0 to {}", c.request.rank,
                       status_.ranks.size() - 1);
  }
  [[nodiscard]] std::string superseded(const Candidate& c) const {
    if (!taken_[c.request.rank]) return "";
    return std::format("another migration of rank {} is in the same wave", c.request.rank);
  }
  [[nodiscard]] std::string no_such_target(const Candidate& c) const {
    if (c.named) return "";
    std::string known;
    for (const auto& set : sets_) known += (known.empty() ? "" : ", ") + set;
    return std::format("there is no {}; the Sets of this job are {}", c.where(), known);
  }
  [[nodiscard]] std::string already_there(const Candidate& c) const {
    const bool there = c.request.node.empty() ? c.place->set == c.request.set : c.place->node == c.request.node;
    return there ? std::format("rank {} is in {} already", c.request.rank, c.where()) : "";
  }
  [[nodiscard]] std::string no_capacity(const Candidate& c) const {
    if (c.node) return "";
    return c.short_of_memory ? room_.lack(*c.short_of_memory, room_.of(*c.place))
                             : std::format("{} has no free slot", c.where());
  }
  [[nodiscard]] std::string set_left_out(const Candidate& c) const {
    if (std::ranges::contains(sets_, c.node->set)) return "";
    return c.request.node.empty()
               ? std::format("{} is left out by spec.sets.names", c.where())
               : std::format("{} belongs to Set {}, which spec.sets.names leaves out", c.where(), c.node->set);
  }
  [[nodiscard]] std::string too_many_moves(const Candidate& c) const {
    const auto own = static_cast<std::uint32_t>(moves_.size());
    const std::uint32_t most = o_.job.spec.rescheduling.max_moves_per_wave;
    std::string why;
    if (most != 0 && own >= most)
      why = std::format("spec.rescheduling.maxMovesPerWave: {} move at once, it waits for the next wave", most);
    else if (const auto left = moves_left(o_.caps, o_.elsewhere, c.node->set, into(c.node->set), own);
             left && *left == 0)
      why =
          std::format("as many ranks as the operator admits move into Set {} or in the whole cluster now", c.node->set);
    return why.empty() || !c.request.migration.empty() ? why : std::format("rank {}: {}", c.request.rank, why);
  }

  void add(const Candidate& c) {
    ++into_[c.node->set];
    ++held_[c.node->name];
    memory_[c.node->name] -= room_.of(*c.place).both();
    taken_[c.request.rank] = true;
    const wire::Member& source = status_.epoch->members[c.request.rank];
    migrate::Move move;
    move.migration = c.request.migration;
    move.rank = c.request.rank;
    move.source_pod = source.pod;
    move.source_uid = source.pod_uid;
    move.source_address = source.address;
    move.source_set = source.set;
    move.target_pod = pod_name(o_.job.metadata.name, c.request.rank, c.place->generation);
    move.target_set = static_cast<std::uint32_t>(std::ranges::find(sets_, c.node->set) - sets_.begin());
    move.target_node = c.node->name;
    moves_.push_back(std::move(move));
  }
  [[nodiscard]] std::vector<migrate::Move> take() { return std::move(moves_); }

 private:
  [[nodiscard]] std::uint32_t into(const std::string& set) const {
    const auto here = into_.find(set);
    return here == into_.end() ? 0 : here->second;
  }

  const Observed& o_;
  const crds::BspJobStatus& status_;
  const std::vector<std::string>& sets_;
  const MoveCapacity room_;
  std::map<std::string, std::uint32_t> held_;   // pods on each node, whoever's
  std::map<std::string, std::int64_t> memory_;  // that is left for targets
  std::vector<bool> taken_;                     // by rank
  std::map<std::string, std::uint32_t> into_;   // moves of this wave, by Set
  std::vector<migrate::Move> moves_;
};

// In this order: each may count on those before it.
struct Constraint {
  const char* reason;
  std::string (WaveInMaking::*broken)(const Candidate&) const;
  bool passes = false;  // what was made by hand waits until it does
};
constexpr Constraint kConstraints[] = {
    {"NoSuchRank", &WaveInMaking::no_such_rank},        {"Superseded", &WaveInMaking::superseded},
    {"NoSuchTarget", &WaveInMaking::no_such_target},    {"AlreadyThere", &WaveInMaking::already_there},
    {"NoCapacity", &WaveInMaking::no_capacity},         {"NoSuchTarget", &WaveInMaking::set_left_out},
    {"MoveLimit", &WaveInMaking::too_many_moves, true},
};

}  // namespace

Begun begin_wave(const Observed& o, const std::vector<MoveRequest>& requests, crds::BspJobStatus& status) {
  check(status.epoch.has_value(), "a wave begins in an open epoch");
  Begun begun;
  WaveInMaking making(o, status);
  for (const MoveRequest& request : requests) {
    const Candidate candidate = making.find(request);
    const auto broken =
        std::ranges::find_if(kConstraints, [&](const Constraint& c) { return !(making.*c.broken)(candidate).empty(); });
    if (broken == std::end(kConstraints)) {
      making.add(candidate);
      continue;
    }
    auto& answers = broken->passes && !request.migration.empty() ? begun.waiting : begun.refused;
    answers.push_back({request.migration, broken->reason, (making.*broken->broken)(candidate)});
  }
  migrate::Wave wave;
  wave.moves = making.take();
  if (wave.moves.empty()) return begun;

  wave.number = ++status.wave;
  for (migrate::Move& move : wave.moves) {
    ++status.ranks[move.rank].generation;
    if (move.migration.empty()) move.migration = migration_name(o.job.metadata.name, wave.number, move.rank);
  }
  wave.base_epoch = status.epoch->epoch;
  wave.next_epoch = status.epochs_used++;
  wave.rollback_epoch = status.epochs_used++;
  wave.phase = Phase::kPreparing;
  wave.times = {{Phase::kPending, o.now}, {Phase::kPreparing, o.now}};
  ++status.migrations.waves;
  status.migrations.active = static_cast<std::uint32_t>(wave.moves.size());
  status.wave_state = migrate::to_json(wave);
  begun.wave = std::move(wave);
  return begun;
}

namespace {

const crds::RankMigration* migration_of(const migrate::Move& move, const Observed& o) {
  const auto it = std::ranges::find(o.migrations, move.migration, [](const auto& m) { return m.metadata.name; });
  return it == o.migrations.end() ? nullptr : &*it;
}

bool target_was_made(const migrate::Move& move, const Observed& o) {
  return !move.target_uid.empty() || o.pods.contains(move.target_pod) || o.being_made.contains(move.target_pod);
}

}  // namespace

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
  for (const auto& [name, facts] : o.pods) {
    migrate::PodView& pod = view.pods[name];
    pod.exists = true;
    pod.deleting = facts.deleting;
    pod.uncertain = facts.lost;
    pod.ended = facts.cannot_start || (facts.app_ended && facts.app_exit_code != 0);
    pod.message = facts.app_message.empty() ? std::format("its app container ended with code {}", facts.app_exit_code)
                                            : facts.app_message;
    pod.pending = facts.unscheduled;
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
      const bool member = std::ranges::any_of(view.epoch.members, [&](const auto& m) { return m.pod == name; });
      if (!pod.status && !member) pod.unreachable_since = {};
    }
    // The sidecar goes with the pod; how the program ended is then told by the node.
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
// A person named the node; the cost model only counts on the room of a Set.
bool wants_its_node(const std::string& migration, const Observed& o) {
  return std::ranges::any_of(o.migrations, [&](const crds::RankMigration& m) {
    return m.metadata.name == migration && !m.spec.target_node.empty();
  });
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
        work.create_pods.push_back({.rank = move.rank,
                                    .generation = generation,
                                    .attempt = o.job.status.attempt,
                                    .set = o.job.status.epoch->sets[move.target_set],
                                    .node = move.target_node,
                                    .pinned = wants_its_node(move.migration, o),
                                    .target = true,
                                    .migration = move.migration});
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

std::vector<Refusal> orphans(const migrate::Wave* wave, const Observed& o) {
  std::vector<Refusal> out;
  for (const crds::RankMigration& m : o.migrations) {
    const std::uint32_t number = std::max(m.spec.wave, m.status.wave);
    if (crds::is_finished(m.status.phase) || number == 0) continue;
    if (wave && std::ranges::any_of(wave->moves, [&](const auto& move) { return move.migration == m.metadata.name; }))
      continue;
    out.push_back({m.metadata.name, "NoSuchWave",
                   std::format("it is not part of a wave: wave {} is over or was never begun; a migration made by "
                               "hand leaves spec.wave out",
                               number)});
  }
  return out;
}

std::vector<crds::RankMigration> show_wave(const migrate::Wave& wave, const Observed& o) {
  std::vector<crds::RankMigration> out;
  for (std::size_t i = 0; i < wave.moves.size(); ++i) {
    const migrate::Move& move = wave.moves[i];
    const crds::RankMigration* have = migration_of(move, o);
    crds::RankMigration m;
    if (have) {
      m = *have;
      if (crds::is_finished(m.status.phase)) continue;
    } else {
      if (migrate::is_finished(wave) || target_was_made(move, o)) continue;  // somebody has deleted it
      m.metadata.name = move.migration;
      m.metadata.name_space = o.job.metadata.name_space;
      m.metadata.labels[std::string(names::kLabelJob)] = o.job.metadata.name;
      m.metadata.labels[std::string(names::kLabelRank)] = std::to_string(move.rank);
      m.metadata.owner_references = owner_reference(o.job);
      m.spec.job = o.job.metadata.name;
      m.spec.rank = {move.rank};
      m.spec.target_set = o.job.status.epoch ? o.job.status.epoch->sets[move.target_set] : "";
      m.spec.wave = wave.number;
      if (o.job.status.last_decision)
        for (const auto& entry : o.job.status.last_decision->moves)
          if (entry.rank.value == move.rank)
            m.spec.predicted_gain_seconds = significant(entry.predicted_gain_seconds, 6);
    }
    crds::RankMigrationStatus& s = m.status;
    const Phase before = s.phase;
    s.observed_generation = m.metadata.generation;
    s.phase = wave.phase;
    s.reason = wave.reason;
    s.message = wave.message + (wave.message.empty() || wave.delay.empty() ? "" : "; ") + wave.delay;
    s.phase_times = wave.times;
    s.wave = wave.number;
    s.superstep = {wave.gate.superstep};
    s.from_epoch = wave.base_epoch;
    s.to_epoch = wave.rollback_committed ? wave.rollback_epoch : wave.next_epoch;
    s.source_pod = move.source_pod;
    s.target_pod = move.target_pod;
    s.target_node = move.target_node;
    if (const auto pod = o.pods.find(move.target_pod); pod != o.pods.end() && !pod->second.node.empty())
      s.target_node = pod->second.node;
    if (o.job.status.epoch) s.target_set = o.job.status.epoch->sets[move.target_set];
    if (const auto pod = o.pods.find(move.source_pod); pod != o.pods.end()) {
      s.source_set = pod->second.set;
      s.source_node = pod->second.node;
    }
    if (s.start_time == Time{} && !wave.times.empty()) s.start_time = wave.times.front().time;
    if (m.spec.predicted_gain_seconds != 0) s.predicted_gain_seconds = significant(m.spec.predicted_gain_seconds, 6);
    if (migrate::is_finished(wave)) {
      s.completion_time = wave.times.back().time;
      s.pause = wave.pause;
      crds::visit_fields(s.pause, [](const char*, double& ms) { ms = significant(ms, 4); });
      if (i < wave.bytes.size()) s.bytes = wave.bytes[i];
    }
    if (!have || before != s.phase || have->status.superstep != s.superstep || have->status.message != s.message ||
        have->status.phase_times.size() != s.phase_times.size())
      out.push_back(std::move(m));
  }
  return out;
}

crds::RankMigration refused(const crds::RankMigration& migration, const Refusal& refusal, Time now) {
  crds::RankMigration m = migration;
  m.status.observed_generation = m.metadata.generation;
  m.status.phase = Phase::kFailed;
  m.status.reason = refusal.reason;
  m.status.message = refusal.message;
  m.status.start_time = m.status.completion_time = now;
  m.status.phase_times = {{Phase::kPending, now}, {Phase::kFailed, now}};
  return m;
}

}  // namespace bsp::reconcile
