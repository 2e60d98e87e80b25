// Chooses the moves of a wave: each request against a table of named constraints.
#include <algorithm>
#include <format>
#include <map>
#include <tuple>

#include "base/core/significant.h"
#include "operator/reconcile/kernel/prices.h"
#include "operator/reconcile/kernel/rescheduling/failed_moves.h"
#include "operator/reconcile/kernel/rescheduling/move_memory.h"
#include "operator/reconcile/kernel/seats/free_seats.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

using migrate::Phase;

namespace {

// A request and where it could be met.
struct Candidate {
  const MoveRequest& request;
  const crds::RankPlace* place = nullptr;  // of the rank; null: there is none
  bool named = false;                      // the request names a node
  const observe::NodeFacts* node = nullptr;
  const Seat* seat = nullptr;                           // a free one on that node; null: a pod is made
  const observe::NodeFacts* short_of_memory = nullptr;  // a node with a slot, but not the memory
  const observe::NodeFacts* other_cpu = nullptr;        // a node whose CPU lacks something for the rank's program …
  bool has_cpu = false;                                 // … while another's doesn't
  std::string held = {};                                // why none, or a Set with a node, isn't tried now; "": each is

  [[nodiscard]] std::string where() const {
    if (request.away) return "no other node of the job's Sets";
    return request.node.empty() ? "Set " + request.set : "node " + request.node;
  }
};

// Chooses the moves of a wave, one request after the other.
class WaveBuilder {
 public:
  WaveBuilder(const Observed& o, const crds::BspJobStatus& status)
      : o_(o),
        status_(status),
        sets_(status.epoch->sets),
        capacity_(o),
        failed_(o),
        cpu_(cpu_facts(o)),
        free_(free_seats(o)),
        taken_(status.ranks.size()) {
    for (const auto& node : o.nodes) {
      held_[node.name] = node.taken;
      memory_[node.name] = capacity_.free_memory(node);
      if (const auto seats = free_.find(node.name); node.memory && seats != free_.end())
        memory_[node.name] -= static_cast<std::int64_t>(seats->second.size()) * capacity_.asked();
    }
    for (const auto& [name, pod] : o.pods) held_[pod.node] += static_cast<std::uint32_t>(pod.apps.size());
  }

  [[nodiscard]] Candidate find(const MoveRequest& request) const {
    Candidate c{.request = request};
    if (request.rank >= status_.ranks.size()) return c;
    c.place = &status_.ranks[request.rank];
    if (request.away) c.held = failed_.just_failed(request.rank);
    if (!c.held.empty()) return c;
    // Last of all where its targets have failed more than once.
    for (const bool again : {false, true})
      for (const bool elsewhere : {false, true})
        if (!c.node && (request.away || !(again || elsewhere))) find_node(c, elsewhere, again);
    return c;
  }

  // For a rank that has to leave its node, `elsewhere`: in the other Sets of the job; `again`: where its targets have
  // failed more than once.
  void find_node(Candidate& c, bool elsewhere, bool again) const {
    const MoveRequest& request = c.request;
    for (const auto& node : o_.nodes) {
      if (request.away ? (node.set == c.place->set) == elsewhere || !std::ranges::contains(sets_, node.set) ||
                             node.name == c.place->node
          : request.node.empty() ? node.set != request.set
                                 : node.name != request.node)
        continue;
      c.named = true;
      if (cpu_.lacks(node.name, request.rank).known()) {
        c.other_cpu = &node;
        continue;
      }
      c.has_cpu = true;
      const Seat* seat = free_seat(node, request.rank);
      if (node.cordoned || (!seat && held_.at(node.name) >= node.slots)) continue;
      const FailedMoves::InSet* failed = request.away ? failed_.of(request.rank, node.set) : nullptr;
      if ((failed && failed->count >= kFailuresInOneSet) != again) continue;
      if (failed && failed_.is_held(*failed)) {
        c.held = text_of(*failed, node.set);
        continue;
      }
      if (memory_.at(node.name) < memory_for(*c.place, seat)) {
        c.short_of_memory = &node;
        continue;
      }
      if (!c.node || seat) c.node = &node, c.seat = seat;
      if (seat || free_.empty()) break;  // there, no pod has to be made
    }
  }

  // One whose pod has the library that the rank's program has been started with (troubles.cc).
  [[nodiscard]] const Seat* free_seat(const observe::NodeFacts& node, std::uint32_t rank) const {
    const auto seats = free_.find(node.name);
    if (seats == free_.end()) return nullptr;
    const wire::RankStatus* said = o_.said(status_.ranks[rank].seat());
    const auto fits = std::ranges::find_if(seats->second, [&](const Seat& seat) {
      const wire::RankStatus* there = o_.said(seat);
      return !said || !there || said->runtime.empty() || there->runtime.empty() || said->runtime == there->runtime;
    });
    return fits == seats->second.end() ? nullptr : &*fits;
  }
  // What a seat's container asks for is held already.
  [[nodiscard]] std::int64_t memory_for(const crds::RankPlace& place, const Seat* seat) const {
    return capacity_.of(place).both() - (seat ? capacity_.asked() : 0);
  }

  // A slot on such a node gets free soon: a rank of this very wave leaves it, or a pod there is on its way out.
  [[nodiscard]] bool is_to_get_room(const Candidate& c) const {
    const auto wanted = [&](const std::string& node) {
      const auto facts = std::ranges::find(o_.nodes, node, &observe::NodeFacts::name);
      return facts != o_.nodes.end() && !facts->cordoned &&
             (c.request.node.empty() ? facts->set == c.request.set : facts->name == c.request.node);
    };
    return std::ranges::any_of(moves_, [&](const migrate::Move& move) { return wanted(move.source_node); }) ||
           std::ranges::any_of(o_.pods, [&](const auto& entry) {
             return entry.second.deleting && !entry.second.lost && wanted(entry.second.node);
           });
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
    if (c.named || c.request.away) return "";
    std::string known;
    for (const auto& set : sets_) known += (known.empty() ? "" : ", ") + set;
    return std::format("there is no {}; the Sets of this job are {}", c.where(), known);
  }
  [[nodiscard]] std::string already_there(const Candidate& c) const {
    if (c.request.away) return "";
    const bool there = c.request.node.empty() ? c.place->set == c.request.set : c.place->node == c.request.node;
    return there ? std::format("rank {} is in {} already", c.request.rank, c.where()) : "";
  }
  [[nodiscard]] std::string cpu_features_differ(const Candidate& c) const {
    if (c.node || c.has_cpu || !c.other_cpu) return "";
    return std::format(
        "the CPU of node {} lacks {}, which the libraries of rank {} have seen when they chose their code; with "
        "spec.cpu: "
        "Common a job starts with what the CPUs of all its Sets have",
        c.other_cpu->name, cpu_.lacks(c.other_cpu->name, c.request.rank).text(), c.request.rank);
  }
  [[nodiscard]] std::string no_capacity(const Candidate& c) const {
    if (c.node) return "";
    if (!c.held.empty()) return c.held;
    return c.short_of_memory ? capacity_.lack(*c.short_of_memory, capacity_.of(*c.place))
                             : std::format("{} has {} free slot", c.where(), c.request.away ? "a" : "no");
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
      why = std::format("spec.rescheduling.maxMovesPerWave: {} move at once; this one waits for the next wave", most);
    else if (own >= kMostMoves)
      why = std::format("a wave moves {} ranks at most; this one waits for the next wave", kMostMoves);
    else if (const auto left = moves_left(o_.caps, o_.elsewhere, c.node->set, into(c.node->set), own);
             left && *left == 0)
      why = std::format("the operator's limit of simultaneous moves, into Set {} or in the cluster, is reached",
                        c.node->set);
    return why.empty() || c.request.away || !c.request.migration.empty()
               ? why
               : std::format("rank {}: {}", c.request.rank, why);
  }

  void add(const Candidate& c) {
    ++into_[c.node->set];
    memory_[c.node->name] -= memory_for(*c.place, c.seat);
    taken_[c.request.rank] = true;
    const wire::Member& source = status_.epoch->members[c.request.rank];
    migrate::Move move;
    move.migration = c.request.migration;
    move.predicted_gain_seconds = significant(c.request.predicted_gain_seconds, 6);
    move.rank = c.request.rank;
    move.source_pod = source.pod;
    move.source_local = source.seat;
    move.source_uid = source.pod_uid;
    move.source_address = source.address;
    move.source_set = source.set;
    move.source_node = c.place->node;
    move.target_pod = pod_name(o_.job.metadata.name, c.request.rank, c.place->generation);
    move.target_set = static_cast<std::uint32_t>(std::ranges::find(sets_, c.node->set) - sets_.begin());
    move.target_node = c.node->name;
    if (c.seat) {
      take_seat(*c.seat, move);
    } else {
      ++held_[c.node->name];
      share_pod(move);
    }
    moves_.push_back(std::move(move));
  }
  void take_seat(const Seat& seat, migrate::Move& move) {
    const PodFacts& pod = o_.pods.at(seat.pod);
    move.target_pod = seat.pod;
    move.target_local = seat.local;
    move.target_uid = pod.uid;
    move.target_address = pod.address;
    move.into_free_seat = true;
    std::vector<Seat>& seats = free_.at(pod.node);
    seats.erase(std::ranges::find(seats, Seat{move.target()}));
  }
  // Ranks that move to one node travel to one pod, as far as its node affinity can be the same for all.
  void share_pod(migrate::Move& move) {
    const std::string left = move.source_set == move.target_set ? move.source_node : "";
    Filling& filling = filling_[{move.target_node, left, wants_its_node(move.migration, o_)}];
    if (filling.seats == 0 || filling.seats >= most_seats(o_.job)) filling = {move.target_pod, 0};
    move.target_pod = filling.pod;
    move.target_local = filling.seats++;
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
  const MoveCapacity capacity_;
  const FailedMoves failed_;
  const observe::CpuFacts cpu_;
  FreeSeats free_;                              // that no rank of this wave takes
  std::map<std::string, std::uint32_t> held_;   // slots taken on each node, by whomever
  std::map<std::string, std::int64_t> memory_;  // that is left for targets
  std::vector<bool> taken_;                     // by rank
  std::map<std::string, std::uint32_t> into_;   // moves of this wave, by Set
  std::vector<migrate::Move> moves_;
  struct Filling {
    std::string pod;
    std::uint32_t seats = 0;  // that are taken
  };
  std::map<std::tuple<std::string, std::string, bool>, Filling>
      filling_;  // by node, the node left and what the pod requires
};

// In this order: each may rely on those before it.
struct Constraint {
  const char* reason;
  std::string (WaveBuilder::*why_not)(const Candidate&) const;
  bool passes = false;  // a request by hand waits until it passes
};
constexpr const char* kNoCapacity = "NoCapacity";
constexpr Constraint kConstraints[] = {
    {"NoSuchRank", &WaveBuilder::no_such_rank},
    {"Superseded", &WaveBuilder::superseded},
    {"NoSuchTarget", &WaveBuilder::no_such_target},
    {"AlreadyThere", &WaveBuilder::already_there},
    {kCpuFeaturesDiffer, &WaveBuilder::cpu_features_differ},
    {kNoCapacity, &WaveBuilder::no_capacity},
    {"NoSuchTarget", &WaveBuilder::set_left_out},
    {"MoveLimit", &WaveBuilder::too_many_moves, true},
};

}  // namespace

WaveStart begin_wave(const Observed& o, const std::vector<MoveRequest>& requests, crds::BspJobStatus& status) {
  check(status.epoch.has_value(), "a wave begins in an open epoch");
  WaveStart start;
  WaveBuilder builder(o, status);
  struct Unmet {
    Candidate candidate;
    const Constraint* because;
    std::string why;
  };
  std::vector<Unmet> unmet;
  for (const MoveRequest& request : requests) {
    const Candidate candidate = builder.find(request);
    const auto why_not = std::ranges::find_if(
        kConstraints, [&](const Constraint& c) { return !(builder.*c.why_not)(candidate).empty(); });
    if (why_not == std::end(kConstraints))
      builder.add(candidate);
    else
      unmet.push_back({candidate, why_not, (builder.*why_not->why_not)(candidate)});
  }
  for (auto& [candidate, because, why] : unmet) {
    const MoveRequest& request = candidate.request;
    const bool lacks_room = because->reason == kNoCapacity;
    const bool soon = lacks_room && !request.away && builder.is_to_get_room(candidate);
    if (soon) why += ", and waits for one that gets free";
    // A rank that has to leave its node goes as soon as there is a slot.
    const bool waits = because->passes || soon || (request.away && lacks_room);
    const bool drained = request.away && candidate.place && o.leaving.contains(candidate.place->node);
    if (drained && start.stuck.empty() && !because->passes) start.stuck = std::format("rank {}: {}", request.rank, why);
    if (request.away && request.migration.empty()) continue;
    auto& answers = waits && !request.migration.empty() ? start.waiting : start.refused;
    answers.push_back({request.migration, because->reason, std::move(why)});
  }
  migrate::Wave wave;
  wave.moves = builder.take();
  if (wave.moves.empty()) return start;

  wave.added_an_hour = added_an_hour(wave, o);
  wave.number = ++status.wave;
  for (migrate::Move& move : wave.moves) {
    ++status.ranks[move.rank].generation;
    if (move.migration.empty()) move.migration = migration_name(o.job.metadata, wave.number, move.rank);
  }
  wave.base_epoch = status.epoch->epoch;
  wave.next_epoch = status.epochs_used++;
  wave.rollback_epoch = status.epochs_used++;
  wave.phase = Phase::kPreparing;
  wave.times = {{Phase::kPending, o.now}, {Phase::kPreparing, o.now}};
  ++status.migrations.waves;
  status.migrations.active = static_cast<std::uint32_t>(wave.moves.size());
  status.wave_state = migrate::to_json(wave);
  start.wave = std::move(wave);
  return start;
}

}  // namespace bsp::reconcile
