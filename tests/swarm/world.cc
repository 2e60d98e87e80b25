#include "tests/swarm/world.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <format>

#include "base/json/fields.h"
#include "crds/fencing.h"
#include "operator/kube/fields.h"
#include "tests/swarm/faults.h"
#include "tests/swarm/operator.h"

namespace bsp::simulation {

using nlohmann::json;
using simulated::Process;

namespace {

simulated::Pace pace_of(const Swarm& swarm) {
  return {.superstep = {swarm.superstep_low, swarm.superstep_high},
          .close = {1, 3},
          .dump = {1, 8},
          .stream = {1, 8},
          .restore = {1, 8},
          .enter = {0, 3},
          .tick_ns = 100'000'000};
}
// After the last fault. A pod that is not heard any more is waited for for minutes, and an attempt may start again.
constexpr int kPatience = 1800 * kTicksPerSecond;

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

}  // namespace

World::World(const Swarm& swarm)
    : simulated::Cluster(
          {.ranks = swarm.ranks, .supersteps = swarm.supersteps, .pace = pace_of(swarm), .seed = swarm.seed}),
      swarm_(swarm),
      store_(tick_),
      faults_(std::make_unique<Faults>(*this)) {
  begin_virtual_time();
  messages_come_again = true;
  counts_starting = false;
  start_ns = static_cast<std::uint64_t>(SystemClock::now().time_since_epoch().count());
  store_.on_change = [this](const Store::Change& change) { take_note(change); };
  note(swarm_.text());
  create_nodes();
  create_job();
  for (int i = 0; i < swarm_.operators; ++i) operators_.push_back(std::make_unique<Operator>(*this, i));
}

World::~World() {
  operators_.clear();
  running_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(std::format("/dev/shm/simulate-cluster-{}", ::getpid()), ignored);
}

void World::create_job() {
  json spec{{"ranks", swarm_.ranks},
            {"sets", {{"names", {"slow", "fast"}}}},
            {"rescheduling", {{"mode", "Migrate"}}},
            {"runPolicy", {{"backoffLimit", 30}}},
            {"template",
             {{"spec",
               {{"securityContext", {{"runAsUser", 1000}, {"runAsGroup", 1000}}},
                {"containers",
                 {{{"name", "app"},
                   {"image", "program"},
                   {"command", {"program"}},
                   {"resources", {{"requests", {{"cpu", "1"}}}}}}}}}}}}};
  spec["ranksPerPod"] = swarm_.seats;
  if (swarm_.checkpoints) spec["checkpoint"] = {{"interval", "5s"}, {"storage", {{"hostPath", {{"path", "/sets"}}}}}};
  const auto created = store_.create({{"apiVersion", kBspJob.api_version},
                                      {"kind", kBspJob.kind},
                                      {"metadata", {{"name", kJobName}, {"namespace", kNameSpace}}},
                                      {"spec", std::move(spec)}});
  check(created.has_value(), "the job is created");
}

void World::for_each_pod(const std::function<void(simulated::Pod&)>& f) {
  for (auto& [uid, running] : running_)
    for (simulated::Pod& seat : running.seats) f(seat);
}

std::uint64_t World::committed_epoch() const { return job_.status.epoch ? job_.status.epoch->epoch : 0; }

bool World::may_be_open(std::uint64_t epoch) const {
  return epoch == committed_epoch() || lost_epochs_.contains(epoch);
}

// A pod of which a restored store knows nothing has its grace period, and nobody could tell a new operator of it. Its program can do
// nothing once another rank of its epoch has ended.
bool World::can_compute(const simulated::Pod& pod) {
  if (!of(pod)->lost) return true;
  std::uint32_t running = 0;
  for_each_pod([&](const simulated::Pod& seat) {
    const bool is_peer = seat.up_at <= restored_at_ && seat.status.epoch == pod.status.epoch;
    running += is_peer && seat.process == Process::kRunning;
  });
  return running == swarm_.ranks;
}

// Than the one that a pod was let into before the store went back.
bool World::is_another(const wire::EpochPlan& plan) {
  const auto before = committed_.find(plan.epoch);
  bool is_known = false;
  for_each_pod(
      [&](const simulated::Pod& seat) { is_known |= !of(seat)->lost && seat.status.admitted_epoch == plan.epoch; });
  return is_known && before != committed_.end() && before->second != plan;
}

Running* World::of(const simulated::Pod& pod) {
  const auto it = running_.find(pod.uid);
  return it == running_.end() ? nullptr : &it->second;
}

Running* World::at(const std::string& address) {
  const auto it = std::ranges::find_if(running_, [&](const auto& entry) { return entry.second.address == address; });
  return it == running_.end() ? nullptr : &it->second;
}

bool World::answers(const Running& running) const {
  return running.sidecar && tick_ >= running.up_at && tick_ >= running.sidecar_down_until && !is_cut(running.node);
}

void World::container_ended(simulated::Pod& pod, int code) {
  if (Running* const running = of(pod)) running->ends[pod.local] = {tick_ + 2, code};
}

simulated::Answer World::answer_of(simulated::Pod& pod, std::string_view verb, const json& fields,
                                   const std::shared_ptr<const wire::EpochPlan>& plan) {
  return of(pod)->sidecar->answer(pod, verb, fields, plan);
}

// --- What is stored -----------------------------------------------------------------------------------------------
void World::take_note(const Store::Change& change) {
  const json& object = *change.object;
  if (change.type == kube::EventType::kDeleted && key_of(object) == kJobKey) removed_ = true;
  if (change.type == kube::EventType::kDeleted || text_at(object, "kind") != kBspJob.kind) return;
  auto job = crds::bsp_job_from_json(object);
  if (!job) return;  // somebody has seen to it
  const crds::BspJobStatus before = std::exchange(job_, std::move(*job)).status;
  const crds::BspJobStatus& now = job_.status;
  if (now.phase != before.phase || now.reason != before.reason)
    note(std::format("{} -> {} ({}): {}", crds::to_string(before.phase), crds::to_string(now.phase), now.reason,
                     now.message));
  if (now.wave_state != before.wave_state && now.wave_state.is_object())
    note(std::format("wave {} {} {}", now.wave, text_at(now.wave_state, "phase"), text_at(now.wave_state, "message")));
  if (now.epoch && (!before.epoch || before.epoch->epoch != now.epoch->epoch)) {
    note(std::format("commits epoch {}", now.epoch->epoch));
    if (now.epoch->epoch <= highest_epoch_ || is_another(*now.epoch))
      violate(std::format("epoch number {} is used twice", now.epoch->epoch));
    highest_epoch_ = now.epoch->epoch;
    committed_.insert_or_assign(highest_epoch_, *now.epoch);
  }
  if (now.checkpoint)
    for (const crds::StoredSet& set : now.checkpoint->sets)
      for (std::uint32_t rank = 0; rank < swarm_.ranks && !lost_sets_.contains(set.id); ++rank) {
        const auto image = storage.find({set.id, rank});
        if (image == storage.end())
          violate(std::format("set {} is named without the image of rank {}", set.id, rank));
        else if (image->second.base != 0 && !storage.contains({image->second.base, rank}))
          violate(std::format("set {} is named, and gone is what that of rank {} builds on", set.id, rank));
      }
}

// --- Messages -------------------------------------------------------------------------------------------------------
void World::arrive(const std::string& from, const net::Peer& to, const std::string& verb, const json& fields,
                   Mail::Reply reply) {
  Running* const running = at(to.address);
  if ((!from.empty() && is_cut(from)) || !running || !answers(*running)) return;
  if (running->name != to.identity) return reply(fail(ErrorCode::kRefused, "the peer is another pod"));
  if (verb == fencing::kAlive) return reply(running->sidecar->alive(fields));
  running->sidecar->operator_spoke();
  if (verb == fencing::kHears) {
    json answer{{fencing::kHeard, json::array()}, {fencing::kUnheard, json::array()}};
    for (const json& pod : part_at(fields, fencing::kPods)) {
      const auto other = std::ranges::find_if(running_, [&](const auto& e) { return json(e.second.name) == pod; });
      answer[other != running_.end() && answers(other->second) ? fencing::kHeard : fencing::kUnheard].push_back(pod);
    }
    return reply(std::move(answer));
  }
  if (verb == wire::kSetReport) return reply(json{{"reports", json::array()}, {"missing", json::array()}});
  const auto local = count_at<std::size_t>(fields, wire::kSeat);
  if (local >= running->seats.size()) return reply(fail(ErrorCode::kNotFound, "there is no such seat"));
  simulated::Pod& seat = running->seats[local];
  if (verb == wire::kWatch) {
    const auto version = count_at<std::uint64_t>(fields, "version");
    if (seat.status.version != version) return reply(json(seat.status));
    watchers_.push_back({running->uid, static_cast<std::uint32_t>(local), version,
                         tick_ + static_cast<int>(count_at<int>(fields, "wait_ms") / kTick.count()), std::move(reply)});
    return;
  }
  if (verb == wire::kStatus) return reply(json(seat.status));
  if (verb != wire::kKeepSets)
    note(std::format("{} is asked for {} {}", name_of(seat.seat()), verb, part_at(fields, wire::kToken).dump()));
  auto answer = ask(seat, verb, std::make_shared<const json>(fields));
  if (!answer) note(std::format("{} refuses {}: {}", name_of(seat.seat()), verb, answer.error().message));
  reply(std::move(answer));
}

void World::answer_watchers() {
  std::vector<Watcher> due;
  std::erase_if(watchers_, [&](Watcher& watcher) {
    const auto it = running_.find(watcher.uid);
    if (it == running_.end() || !answers(it->second)) return it == running_.end() || tick_ > watcher.until + 100;
    if (it->second.seats[watcher.local].status.version == watcher.version && tick_ < watcher.until) return false;
    due.push_back(std::move(watcher));
    return true;
  });
  for (Watcher& watcher : due) watcher.reply(json(running_.at(watcher.uid).seats[watcher.local].status));
}

// --- Time -------------------------------------------------------------------------------------------------------------
void World::turn() {
  ++tick_;
  set_virtual_time(tick_ * kTick);
  faults_->strike();
  run_nodes();
  advance();
  mail_.deliver(tick_);
  answer_watchers();
  for (auto& one : operators_) one->run();
}

bool World::is_over() const { return removed_ || crds::is_finished(job_.status.phase); }

Outcome World::run() {
  const int end = swarm_.faults_until + kPatience;
  while (violation.empty() && !is_over() && tick_ < end) turn();
  if (violation.empty()) check_end();
  Outcome outcome;
  outcome.violation = violation;
  outcome.phase = crds::to_string(job_.status.phase);
  outcome.attempts = job_.status.attempt;
  outcome.waves = job_.status.wave;
  outcome.moved = faults_->moved();
  outcome.sets = job_.status.checkpoint ? static_cast<std::uint32_t>(job_.status.checkpoint->sets.size()) : 0;
  outcome.ticks = tick_;
  outcome.faults = faults_->struck();
  outcome.fingerprint = hash_of(trace);
  outcome.trace = std::move(trace);
  return outcome;
}

void World::check_end() {
  const crds::BspJobStatus& status = job_.status;
  if (!is_over()) {
    std::string conditions;
    for (const crds::Condition& condition : status.conditions)
      if (condition.status == crds::ConditionStatus::kTrue)
        conditions += std::format("; {}: {}", condition.type, condition.message);
    return violate(std::format("the job has not ended long after the last fault: {} {}{}",
                               crds::to_string(status.phase), status.message, conditions));
  }
  if (status.phase != crds::JobPhase::kSucceeded)
    return violate(std::format("the job has failed: {} {}", status.reason, status.message));
  if (swarm_.is_harmless() && status.attempt > 0)
    violate(std::format("the job was restarted {} times, and nothing was taken from it: {}", status.attempt,
                        status.message));
}

}  // namespace bsp::simulation
