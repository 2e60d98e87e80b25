#include "tests/unit/reconcile/world.h"

#include <algorithm>
#include <format>

#include "crds/names.h"

namespace bsp::reconcile::sim {

using nlohmann::json;
using wire::RankPhase;
using wire::TransferPhase;

World::World(const Options& options) : options_(options), random_(options.seed) {
  if (options.cluster) options.cluster->worlds.push_back(this);
  job.metadata.name = options.name;
  job.metadata.name_space = "default";
  job.metadata.uid = options.name + "-uid";
  job.metadata.generation = 1;
  job.spec.ranks = options.ranks;
  job.spec.pod_template = {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}, {"command", {"program"}}}}}}}};
  // Local nodes: one slot each; by name, as the cache lists them.
  for (std::uint32_t i = 0; i < options.fast; ++i) nodes.push_back({.name = std::format("fast-{}", i), .set = "fast"});
  for (std::uint32_t i = 0; i < options.slow; ++i)
    nodes.push_back({.name = std::format("slow-{}", i), .set = "slow", .speed = 0.25});
  job.spec.sets.names = {"slow", "fast"};
}

void World::note(const std::string& what) { trace += std::format("{:5} {}\n", tick_, what); }
void World::violate(const std::string& what) {
  if (violation.empty()) violation = std::format("at tick {}: {}", tick_, what);
  note("VIOLATION " + what);
}

void World::tick() {
  ++tick_;
  now += kTick;
  steady += kTick;
  programs();
  advance_pods();
  open_epochs();
  auto due = std::ranges::partition(messages_, [&](const Message& m) { return m.at > tick_; });
  const std::vector<Message> arrived(due.begin(), due.end());
  messages_.erase(due.begin(), due.end());
  for (const Message& m : arrived) deliver(m);
  if (tick_ >= operator_up_at_ && !removed) operate();
  check_invariants();
}

// --- The program -------------------------------------------------------------------------------------------
// All ranks pass an edge together, as a barrier makes them; what the gate words say is read there.
void World::programs() {
  std::vector<Pod*> ranks;
  for (auto& [name, pod] : pods)
    if (pod.process == Process::kRunning && !pod.opening && pod.stop_at < 0) ranks.push_back(&pod);
  if (ranks.size() != options_.ranks) return;
  for (Pod* pod : ranks)
    if (tick_ < pod->cut_off_until) return;
  for (Pod* pod : ranks)
    if (pod->status.epoch != ranks[0]->status.epoch) return;
  std::size_t voters = 0, held = 0;
  bool drop = false;
  for (Pod* pod : ranks) {
    auto& s = pod->status;
    const bool at = s.gate_superstep != 0 && superstep_ >= s.gate_superstep;
    if (at && s.gate_committed) ++voters, drop |= pod->dropping;
    if (at && !s.gate_committed) ++held;
    s.phase = at && !s.gate_committed ? RankPhase::kAtGate : RankPhase::kRunning;
  }
  if (held) return;
  if (voters && voters < ranks.size()) return violate("only some ranks vote at the gate");
  if (voters && !drop && !never_migratable) {
    for (Pod* pod : ranks) {
      pod->status.phase = RankPhase::kClosing;
      pod->stop_at = tick_ + 1;
    }
    return;
  }
  for (Pod* pod : ranks) {
    pod->status.blocked_reason = voters && !drop ? "not migratable now: an open file" : "";
    if (voters && drop) pod->status.gate_superstep = 0, pod->status.gate_committed = pod->dropping = false;
  }
  if (superstep_ >= options_.supersteps) {
    for (Pod* pod : ranks) end_program(pod->rank, 0, 0);
    return;
  }
  ++superstep_;
  for (Pod* pod : ranks) pod->status.completed = superstep_;
}

void World::end_program(std::uint32_t rank, int exit_code, int signal, bool sidecar_tells) {
  for (auto& [name, pod] : pods) {
    const bool alive = pod.computes() || pod.process == Process::kStopped;
    if (pod.rank != rank || !alive) continue;
    note(std::format("{} ends with {} signal {}", name, exit_code, signal));
    pod.process = Process::kEnded;
    pod.opening = false;
    pod.stop_at = -1;
    pod.exit_code = signal ? 128 + signal : exit_code;
    if (node_reports_ends) pod.app_ended_at = tick_ + 2;
    if (!sidecar_tells) {
      pod.silent_until = 1 << 30;
      continue;
    }
    pod.status.phase = RankPhase::kExited;
    pod.status.exit_code = signal ? -1 : exit_code;
    pod.status.exit_signal = signal;
    pod.status.init_connected = false;
  }
}

// --- Pods and sidecars -------------------------------------------------------------------------------------
void World::advance_pods() {
  std::erase_if(pods, [&](const auto& entry) { return entry.second.gone_at >= 0 && tick_ >= entry.second.gone_at; });
  for (auto& [name, pod] : pods) {
    auto& s = pod.status;
    if (tick_ >= pod.up_at && !s.init_connected && pod.process == Process::kNone && pod.stuck.is_null()) {
      s.init_connected = true;
      if (!pod.target) pod.process = Process::kStarting, s.phase = RankPhase::kStarting;
    }
    if (pod.stop_at >= 0 && tick_ >= pod.stop_at) {
      pod.stop_at = -1;
      pod.process = Process::kStopped;
      s.phase = RankPhase::kStopped;
      const json order = std::exchange(pod.order, json());
      if (!order.is_null() && s.gate_committed && !pod.dropping && tick_ >= pod.silent_until) start_dump(pod, order);
      s.gate_superstep = 0;
      s.gate_committed = pod.dropping = false;
      s.stopped_ns = static_cast<std::uint64_t>(tick_) * 200'000'000;
      continue;
    }
    if (pod.transfer_at < 0 || tick_ < pod.transfer_at) continue;
    pod.transfer_at = -1;
    auto& t = s.transfer;
    if (t.phase == TransferPhase::kRestoring) {
      t.phase = TransferPhase::kRestored;
      t.restore_ns = 60'000'000;
      pod.process = Process::kRestored;
      s.phase = RankPhase::kStopped;
      s.mpi_initialized = true;
    } else if (t.phase == TransferPhase::kDumping && t.dump_ns == 0) {
      t.dump_ns = 80'000'123;  // criu has ended, the rest of its stream is under way
      pod.transfer_at = tick_ + 1;
    } else if (t.phase == TransferPhase::kDumping) {
      Pod* target = nullptr;
      for (auto& [other, p] : pods)
        if (p.target && p.status.transfer.migration == t.migration && p.receives_from == name) target = &p;
      const bool ok = target && target->status.transfer.phase == TransferPhase::kReceiving &&
                      tick_ >= target->silent_until && target->gone_at < 0 && pod.process == Process::kStopped;
      t.phase = ok ? TransferPhase::kSent : TransferPhase::kFailed;
      t.bytes = 50'000'000;
      if (!ok) t.error = "the stream broke";
      if (ok) {
        target->status.transfer.phase = target->restores ? TransferPhase::kRestoring : TransferPhase::kReceived;
        if (target->restores) target->transfer_at = tick_ + 1;
        target->status.transfer.bytes = t.bytes;
        target->status.transfer.transfer_ns = 100'000'000;
        target->status.completed = s.completed;
      }
    }
  }
}

// An epoch opens when all ranks of its plan are in the opening.
void World::open_epochs() {
  std::vector<Pod*> opening;
  for (auto& [name, pod] : pods)
    if (pod.opening && pod.process == Process::kRunning) opening.push_back(&pod);
  if (opening.size() != options_.ranks) return;
  for (Pod* pod : opening)
    if (pod->status.epoch != opening[0]->status.epoch) return;
  for (Pod* pod : opening) {
    if (pod->hangs_in_opening) continue;
    pod->opening = false;
    pod->status.phase = RankPhase::kRunning;
    pod->status.mpi_initialized = true;
    pod->status.first_compute_ns = static_cast<std::uint64_t>(tick_) * 200'000'000;
    superstep_ = pod->status.completed;
  }
}

void World::start_dump(Pod& pod, const json& send) {
  Pod* target = find(send.at("to_pod").get<std::string>());
  if (target && send.at("to_address") != pod_facts(pod_object(*target)).address) violate("send names another address");
  pod.status.transfer = {};
  pod.status.transfer.migration = send.at("migration").get<std::string>();
  pod.status.transfer.phase = TransferPhase::kDumping;
  pod.transfer_at = tick_ + 1;
}

// What a sidecar does when it is asked (crds/wire.h).
Result<json> World::answer(Pod& pod, const migrate::Action& action) {
  auto& s = pod.status;
  auto& t = s.transfer;
  const json& f = *action.fields;
  const std::string_view verb = to_string(action.kind);
  if (verb == wire::kPrepareEpoch) {
    BSP_TRY(wire::EpochPlan plan, wire::epoch_plan_from_json(f));
    s.prepared_epoch = std::max(s.prepared_epoch, plan.epoch);
    pod.prepared[plan.epoch] = std::move(plan);
  } else if (verb == wire::kOpenEpoch) {
    const auto epoch = f.at("epoch").get<std::uint64_t>();
    if (!pod.prepared.contains(epoch)) return fail(ErrorCode::kConflict, "not prepared", true);
    if (pod.prepared.rbegin()->first > epoch && epoch != s.admitted_epoch)
      return fail(ErrorCode::kConflict, "a later one was prepared since");
    const wire::Member& member = pod.prepared[epoch].members.at(pod.rank);
    if (member.pod != pod.name || member.pod_uid != pod.uid) return fail(ErrorCode::kRefused, "another pod's");
    if (epoch <= s.epoch) return json::object();
    const bool can =
        pod.process == Process::kStarting || pod.process == Process::kStopped || pod.process == Process::kRestored;
    if (!can) return fail(ErrorCode::kConflict, "there is no program to continue", true);
    if (!job.status.epoch || job.status.epoch->epoch != epoch)
      violate(std::format("epoch {} is opened, but not committed", epoch));
    note(std::format("{} continues in epoch {}", pod.name, epoch));
    if (t.phase == TransferPhase::kDumping) t = {}, pod.transfer_at = -1;
    pod.process = Process::kRunning;
    pod.opening = true;
    s.epoch = s.admitted_epoch = epoch;
    s.phase = RankPhase::kOpening;
  } else if (verb == wire::kArmGate) {
    const auto p = f.at("superstep").get<std::uint64_t>();
    if (pod.process != Process::kRunning) return fail(ErrorCode::kRefused, "the program does not run");
    if (!s.gate_committed && s.completed < p) s.gate_superstep = p;
    return json{{"completed", s.completed}, {"late", s.completed >= p}};
  } else if (verb == wire::kCommitGate) {
    const auto p = f.at("superstep").get<std::uint64_t>();
    if (s.gate_superstep == 0 && s.completed < p && pod.process == Process::kRunning) s.gate_superstep = p;
    if (s.gate_superstep != p) return fail(ErrorCode::kConflict, "no such gate");
    s.gate_committed = true;
    pod.order = f.value("send", json());
  } else if (verb == wire::kCancelGate) {
    const auto p = f.at("superstep").get<std::uint64_t>();
    if (s.gate_superstep == p && s.gate_committed) pod.dropping = true;
    if (s.gate_superstep == p && !s.gate_committed) s.gate_superstep = 0;
  } else if (verb == wire::kReceive) {
    const auto migration = f.at("migration").get<std::string>();
    pod.receives_from = f.at("from_pod").get<std::string>();
    pod.restores = f.value("restore", false);
    if (t.migration != migration) t = {}, t.migration = migration, t.phase = TransferPhase::kReceiving;
  } else if (verb == wire::kSend) {
    const auto migration = f.at("migration").get<std::string>();
    if (t.migration == migration && t.phase != TransferPhase::kIdle) return json::object();
    if (pod.process != Process::kStopped) return fail(ErrorCode::kConflict, "the program is not stopped");
    note(pod.name + " is asked to send");
    start_dump(pod, f);
  } else if (verb == wire::kRestore) {
    if (t.migration != f.at("migration").get<std::string>() || t.phase != TransferPhase::kReceived)
      return json::object();
    t.phase = TransferPhase::kRestoring;
    pod.transfer_at = tick_ + 1;
  } else if (verb == wire::kDiscard) {
    if (t.migration != f.at("migration").get<std::string>()) return json::object();
    t = {};
    pod.transfer_at = -1;
    if (pod.target && pod.computes()) return fail(ErrorCode::kConflict, "the copy has been continued here");
    if (pod.target) pod.process = Process::kNone, s.phase = RankPhase::kWaiting;
  } else {
    violate(std::format("no such verb: {}", verb));
  }
  return json::object();
}

void World::deliver(const Message& m) {
  Pod* pod = find(m.action.pod);
  if (!pod || tick_ < pod->up_at || tick_ < pod->silent_until || pod->gone_at >= 0) return;
  const auto result = answer(*pod, m.action);
  if (m.life != life_) return;
  SidecarFacts& facts = known_[m.action.pod];
  if (result) {
    facts.done.insert({m.action.kind, m.action.number});
    if (m.action.kind == migrate::ActionKind::kArmGate)
      facts.armed = migrate::ArmAnswer{m.action.number, result->at("completed"), result->at("late")};
    return;
  }
  using K = migrate::ActionKind;
  const K k = m.action.kind;
  if (!result.error().retryable && (k == K::kPrepareEpoch || k == K::kReceive || k == K::kSend || k == K::kRestore))
    facts.refused = std::string(to_string(m.action.kind)) + ": " + result.error().message;
}

// --- What happens to it --------------------------------------------------------------------------------------
Pod* World::find(const std::string& pod) {
  const auto it = pods.find(pod);
  return it == pods.end() ? nullptr : &it->second;
}
Pod* World::pod_of(std::uint32_t rank) {
  return rank < job.status.ranks.size() ? find(job.status.ranks[rank].pod) : nullptr;
}

void World::lose_pod(const std::string& name) {
  if (pods.erase(name)) note("lost " + name);
}
void World::delete_pod(const std::string& name) {
  if (Pod* pod = find(name); pod && pod->gone_at < 0) pod->gone_at = tick_ + 3, note("somebody deletes " + name);
}
void World::evict(const std::string& name) {
  Pod* pod = find(name);
  if (!pod) return;
  note("evicted: " + name);
  pod->evicted = {{"reason", "Evicted"}, {"message", "the node was low on memory"}};
  pod->process = Process::kEnded;
  pod->opening = false;
  pod->stop_at = -1;
  pod->silent_until = 1 << 30;
}
void World::silence(const std::string& name, int ticks) {
  if (Pod* pod = find(name)) pod->silent_until = std::max(pod->silent_until, tick_ + ticks), note("silent: " + name);
}
void World::cut_off(const std::string& name, int ticks) {
  silence(name, ticks);
  if (Pod* pod = find(name)) pod->cut_off_until = pod->silent_until;
}
void World::silence_all(int ticks) {
  for (const auto& [name, pod] : pods) silence(name, ticks);
}
// The tmpfs keeps ring and images; what it was preparing and receiving is lost.
void World::restart_sidecar(const std::string& name) {
  Pod* pod = find(name);
  if (!pod) return;
  note("sidecar restarts: " + name);
  pod->silent_until = std::max(pod->silent_until, tick_ + 3);
  pod->prepared.clear();
  pod->order = nullptr;
  pod->status.prepared_epoch = 0;
  if (pod->status.transfer.phase != TransferPhase::kRestored) pod->status.transfer = {}, pod->transfer_at = -1;
}
void World::restart_operator(int down_for) {
  note("the operator is killed");
  ++life_;
  known_.clear();
  clocks_ = {};
  newest_ = 0;
  progress_ = {};
  known_wave_ = 0;
  unwritten_.clear();
  decided.reset();
  operator_up_at_ = tick_ + down_for;
  if (options_.seed) std::erase_if(messages_, [&](const Message&) { return random(0, 1) == 0; });
}
void World::migrate_by_hand(const std::string& name, std::uint32_t rank, const std::string& set,
                            const std::string& to_node) {
  crds::RankMigration m;
  m.metadata.name = name;
  m.metadata.name_space = "default";
  m.metadata.uid = std::format("uid-{}", ++uids_);
  m.metadata.generation = 1;
  m.spec = {.job = options_.name, .rank = {rank}, .target_set = set, .target_node = to_node};
  migrations[name] = m;
}
void World::decide(std::vector<MoveRequest> moves) {
  decided.emplace();
  decided->decision.message = std::format("moves {}", moves.size());
  for (const MoveRequest& m : moves) decided->decision.moves.push_back({{m.rank}, "", m.set, m.node, 2.500000123});
  decided->moves = std::move(moves);
}

// --- What there is -------------------------------------------------------------------------------------------
migrate::Phase World::wave_phase() const {
  const auto wave = stored_wave(job.status);
  return wave && *wave ? (*wave)->phase : migrate::Phase::kPending;
}
bool World::told(const std::string& reason) const {
  return std::ranges::any_of(events, [&](const Event& e) { return e.reason == reason; });
}
bool World::all_ended() const {
  return std::ranges::none_of(pods, [](const auto& entry) { return entry.second.computes(); });
}

void World::check_invariants() {
  std::map<std::uint32_t, int> copies;
  std::map<std::string, int> held;
  for (const auto& [name, pod] : pods) {
    if (pod.computes() && ++copies[pod.rank] > 1) violate(std::format("rank {} runs twice", pod.rank));
    if (++held[pod.node] > 1) violate("two pods on " + pod.node);
  }
  if (options_.cluster)
    for (const World* other : options_.cluster->worlds)
      for (const auto& [name, pod] : other->pods)
        if (other != this && ++held[pod.node] > 1) violate("pods of two jobs on " + pod.node);
}

}  // namespace bsp::reconcile::sim
