#include "tests/unit/reconcile/world.h"

#include <algorithm>
#include <cstdlib>
#include <format>

#include "base/json/fields.h"
#include "crds/names.h"

namespace bsp::reconcile::sim {

using nlohmann::json;

World::World(const Options& options)
    : simulated::Cluster({.ranks = options.ranks, .supersteps = options.supersteps, .pace = {}, .seed = options.seed}),
      options_(options) {
  if (options.cluster) options.cluster->worlds.push_back(this);
  job.metadata.name = options.name;
  job.metadata.name_space = "default";
  job.metadata.uid = options.name + "-uid";
  job.metadata.generation = 1;
  job.spec.ranks = options.ranks;
  job.spec.ranks_per_pod.most = options.ranks_per_pod;
  job.spec.pod_template = {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}, {"command", {"program"}}}}}}}};
  // By name, as the cache lists them.
  for (std::uint32_t i = 0; i < options.fast; ++i)
    nodes.push_back({.name = std::format("fast-{}", i), .set = "fast", .slots = options.slots});
  for (std::uint32_t i = 0; i < options.slow; ++i)
    nodes.push_back({.name = std::format("slow-{}", i), .set = "slow", .speed = 0.25, .slots = options.slots});
  job.spec.sets.names = {"slow", "fast"};
  job.spec.rescheduling.heuristic = crds::Heuristic::kAutoMig;
}

void World::tick() {
  ++tick_;
  now += kTick;
  steady += kTick;
  start_pods();
  run_remover();
  advance();
  auto due = std::ranges::partition(messages_, [&](const Message& m) { return m.at > tick_; });
  const std::vector<Message> arrived(due.begin(), due.end());
  messages_.erase(due.begin(), due.end());
  for (const Message& m : arrived) deliver(m);
  if (tick_ >= operator_up_at_ && !removed) operate();
  check_invariants();
}

// --- Pods --------------------------------------------------------------------------------------------------
void World::start_pods() {
  std::erase_if(pods, [&](const auto& entry) {
    const Pod& pod = entry.second;
    if (pod.vanished_until != 0) return tick_ >= pod.vanished_until;
    const bool goes = pod.gone_at >= 0 && tick_ >= pod.gone_at;
    if (goes) removed_.insert(entry.first);
    return goes;
  });
  for (auto& [name, pod] : pods) {
    // The kubelet ends the sidecar when no other container is left.
    bool all_ended = pod.app_ended_at >= 0 && tick_ >= pod.app_ended_at + 3 && !pod.helper;
    for (const Pod::End& end : pod.ends_beside) all_ended &= end.at >= 0 && tick_ >= end.at + 3;
    if (all_ended) pod.for_each_seat([](simulated::Pod& seat) { seat.silent_until = 1 << 30; });
    if (tick_ < pod.up_at || !pod.stuck.is_null()) continue;
    pod.for_each_seat([resumes = pod.resumes](simulated::Pod& seat) {
      auto& s = seat.status;
      if (s.init_connected || seat.process != Process::kNone) return;
      s.init_connected = true;
      if (!seat.target && !resumes) seat.process = Process::kStarting, s.phase = wire::RankPhase::kStarting;
    });
  }
}

void World::run_remover() {
  if (!remover) return;
  if (remover->deleting) return remover.reset();
  if (remover->done || remover->failed || storage_hangs) return;
  remover->said = storage_refuses;
  if (!storage_refuses.empty()) return;
  if (job.spec.checkpoint.reclaim_policy == crds::ReclaimPolicy::kDelete) storage.clear();
  remover->done = true;
}

void World::for_each_pod(const std::function<void(simulated::Pod&)>& f) {
  for (auto& [name, pod] : pods) pod.for_each_seat(f);
}

void try_cases(int count) {
  const char* given = std::getenv("RC_PARAMS");
  const std::string params = given ? given : "";
  if (!params.contains("max_success")) setenv("RC_PARAMS", std::format("max_success={} {}", count, params).c_str(), 1);
}

std::vector<std::string> pods_in(const wire::EpochPlan& epoch) {
  std::vector<std::string> pods;
  for (const wire::Member& member : epoch.members) pods.push_back(member.pod_uid);
  return pods;
}

void World::remove_status() {
  if (job.status.epoch) removed_members_ = pods_in(*job.status.epoch);
  note("the status is removed");
  job.status = {};
}

std::uint64_t World::committed_epoch() const { return job.status.epoch ? job.status.epoch->epoch : 0; }

void World::container_ended(simulated::Pod& ended, int code) {
  Pod& pod = pods.at(ended.name);
  const int at = node_reports_ends ? tick_ + 2 : -1;
  if (ended.local != 0) {
    pod.ends_beside[ended.local - 1] = {at, code};
    return;
  }
  pod.exit_code = code;
  if (node_reports_ends) pod.app_ended_at = at;
}

migrate::Action::Fields World::fields_of(const migrate::Action& action) {
  if (!action.plan) return action.encoded();
  if (action.plan != plan_ || action.token != plan_token_)
    plan_ = action.plan, plan_token_ = action.token, plan_fields_ = action.encoded();
  return plan_fields_;
}

void World::deliver(const Message& m) {
  simulated::Pod* pod = find(m.action.seat);
  if (!pod || !pod->answers(tick_)) return;
  if (m.action.kind == migrate::ActionKind::kCommitGate && m.action.fields->contains("send"))
    if (const json& send = (*m.action.fields)["send"]; Pod* target = find(text_at(send, "to_pod")))
      if (text_at(send, "to_address") != facts_of(*target).address) violate("send names another address");
  const auto answer = ask(*pod, to_string(m.action.kind), fields_of(m.action));
  if (m.life == life_) migrate::note_answer(known_[m.action.seat], m.action, answer);
}

// --- What happens to it --------------------------------------------------------------------------------------
Pod* World::find(const std::string& pod) {
  const auto it = pods.find(pod);
  return it == pods.end() ? nullptr : &it->second;
}
simulated::Pod* World::find(const Seat& seat) {
  Pod* pod = find(seat.pod);
  if (!pod || seat.local == 0 || seat.local > pod->beside.size()) return seat.local == 0 ? pod : nullptr;
  return &pod->beside[seat.local - 1];
}
simulated::Pod* World::seat_of_rank(std::uint32_t rank) {
  return rank < job.status.ranks.size() ? find(job.status.ranks[rank].seat()) : nullptr;
}
Pod* World::pod_of(std::uint32_t rank) {
  return rank < job.status.ranks.size() ? find(job.status.ranks[rank].pod) : nullptr;
}

void World::lose_pod(const std::string& name) {
  if (pods.erase(name)) removed_.insert(name), note("lost " + name);
}
void World::vanish(const std::string& name, int runs_on) {
  Pod* pod = find(name);
  if (!pod) return;
  note("the object of " + name + " is removed");
  pod->vanished_until = tick_ + runs_on;
  pod->unknown = !observed_.contains(facts_of(*pod).uid) && !is_stored(*pod);
  pod->silent_until = 1 << 30;  // nobody knows its address any more
}
void World::delete_pod(const std::string& name) {
  Pod* pod = find(name);
  if (!pod || pod->gone_at >= 0) return;
  note("a user deletes " + name);
  pod->for_each_seat([&](simulated::Pod& seat) { seat.gone_at = tick_ + 3; });
}
void World::evict(const std::string& name) {
  Pod* pod = find(name);
  if (!pod) return;
  note("evicted: " + name);
  pod->evicted = {{"reason", "Evicted"}, {"message", "the node was low on memory"}};
  pod->for_each_seat([](simulated::Pod& seat) {
    seat.process = Process::kEnded;
    seat.opening = false;
    seat.stop_at = -1;
    seat.silent_until = 1 << 30;
  });
}
void World::lose_node(const std::string& node) {
  note("lost node " + node);
  std::erase_if(nodes, [&](const auto& facts) { return facts.name == node; });
  for (auto& [name, pod] : pods) {
    if (pod.node != node) continue;
    pod.lost = true;
    cut_off(name, 1 << 29);
    pod.for_each_seat([](simulated::Pod& seat) { seat.process = Process::kEnded; });
  }
}
void World::cordon(const std::string& node, bool on) {
  for (auto& facts : nodes)
    if (facts.name == node) facts.cordoned = on;
  if (on)
    cordons[node] = "is cordoned";
  else
    cordons.erase(node);
}
void World::place_pods() {
  for (auto& [name, pod] : pods) {
    if (!pod.node.empty()) continue;
    const auto free = std::ranges::find_if(nodes, [&](const auto& node) {
      return std::ranges::none_of(pods, [&](const auto& entry) { return entry.second.node == node.name; });
    });
    if (free == nodes.end()) return violate("no node is free for " + name);
    pod.node = free->name;
    pod.object["spec"]["nodeName"] = pod.node;
    pod.for_each_seat([&](simulated::Pod& seat) { seat.up_at = tick_ + slow_start; });
    pod.facts_of.clear();
  }
}
void World::silence(const std::string& name, int ticks) {
  Pod* pod = find(name);
  if (!pod) return;
  note("silent: " + name);
  pod->for_each_seat([&](simulated::Pod& seat) { seat.silent_until = std::max(seat.silent_until, tick_ + ticks); });
}
void World::cut_off(const std::string& name, int ticks) {
  silence(name, ticks);
  if (Pod* pod = find(name)) pod->for_each_seat([](simulated::Pod& seat) { seat.cut_off_until = seat.silent_until; });
}
void World::silence_all(int ticks) {
  for (const auto& [name, pod] : pods) silence(name, ticks);
}
void World::end_container(const Seat& seat) {
  if (simulated::Pod* there = find(seat)) end(*there, -1, 9, true);
}
void World::restart_sidecar(const std::string& name) { Cluster::restart_sidecar(name, 3); }
void World::restart_operator(int down_for) {
  note("the operator is killed");
  ++life_;
  known_.clear();
  known_cpus_.clear();
  clocks_ = {};
  newest_ = 0;
  progress_ = {};
  known_wave_ = 0;
  pod_group = {};
  vanished_ = {};
  observed_.clear();
  for (auto& [name, pod] : pods) pod.unknown |= pod.vanished_until != 0 && !is_stored(pod);
  unwritten_.clear();
  remover_refused_.reset();
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
  for (MoveRequest& m : moves) {
    m.predicted_gain_seconds = 2.500000123;
    decided->decision.moves.push_back({{m.rank}, "", m.set, m.node, m.predicted_gain_seconds});
  }
  decided->moves = std::move(moves);
}

// --- What there is -------------------------------------------------------------------------------------------
migrate::Phase World::wave_phase() const {
  const auto wave = stored_wave(job.status);
  return wave && *wave ? (*wave)->phase : migrate::Phase::kPending;
}
bool World::has_event(const std::string& reason) const {
  return std::ranges::any_of(events, [&](const Event& e) { return e.reason == reason; });
}
bool World::all_ended() const {
  return std::ranges::none_of(pods, [](const auto& entry) { return entry.second.one_computes(); });
}

bool World::is_stored(Pod& pod) const {
  const std::string& uid = facts_of(pod).uid;
  return (job.status.epoch && std::ranges::contains(pods_in(*job.status.epoch), uid)) ||
         std::ranges::contains(job.status.vanished, uid, &crds::VanishedPod::uid);
}
bool World::can_compute(const simulated::Pod& seat) { return !pods.at(seat.name).unknown; }

void World::check_invariants() {
  std::map<std::string, int> held;
  for (const auto& [name, pod] : pods) {
    // Without an object it holds a slot only as long as its program does.
    if (pod.node.empty() || pod.unknown || (pod.vanished_until != 0 && !pod.one_computes())) continue;
    held[pod.node] += 1 + static_cast<int>(pod.beside.size());
    if (static_cast<std::uint32_t>(held[pod.node]) > options_.slots) violate("more ranks than slots on " + pod.node);
  }
  // Whatever the status names is complete, and stays.
  if (job.status.checkpoint && !storage_is_damaged && !(remover && remover->done))
    for (const crds::StoredSet& set : job.status.checkpoint->sets)
      for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
        const auto image = storage.find({set.id, rank});
        if (image == storage.end())
          violate(std::format("set {} is named without the image of rank {}", set.id, rank));
        else if (image->second.base != 0 && !storage.contains({image->second.base, rank}))
          violate(std::format("set {} is named, and gone is what that of rank {} builds on", set.id, rank));
      }
  if (options_.cluster)
    for (const World* other : options_.cluster->worlds)
      for (const auto& [name, pod] : other->pods)
        if (other != this && !pod.node.empty() && ++held[pod.node] > 1) violate("pods of two jobs on " + pod.node);
}

}  // namespace bsp::reconcile::sim
