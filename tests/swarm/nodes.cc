// The world's nodes: what scheduler and kubelets do with pods.
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <format>

#include "base/json/fields.h"
#include "crds/names.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/capacity/resources.h"
#include "operator/reconcile/kernel/pods/pods.h"
#include "tests/swarm/world.h"

namespace bsp::simulation {

using nlohmann::json;
using simulated::Process;

namespace {
constexpr int kGrace = 30 * kTicksPerSecond;
constexpr int kNoticed = 40 * kTicksPerSecond;  // until a node that is silent is shown as such

bool has_ended(const json& pod) {
  const std::string phase = text_at(part_at(pod, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed";
}

net::SteadyTime steady_now() { return std::chrono::steady_clock::now(); }
}  // namespace

bool Running::runs() const {
  return std::ranges::any_of(seats, [](const simulated::Pod& seat) {
    return seat.process != Process::kNone && seat.process != Process::kEnded;
  });
}

void World::create_nodes() {
  const auto make = [&](const std::string& set, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string name = std::format("{}-{}", set, i);
      nodes_[name].set = set;
      json labels{{std::string(names::kLabelSet), set}};
      for (const auto& [label, value] : names::kPlatformLabels) labels[std::string(label)] = value;
      (void)store_.create(
          {{"apiVersion", "v1"},
           {"kind", "Node"},
           {"metadata", {{"name", name}, {"labels", labels}}},
           {"spec", json::object()},
           {"status",
            {{"allocatable", {{"cpu", std::to_string(swarm_.slots)}, {"memory", "64Gi"}, {"pods", "110"}}},
             {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
    }
  };
  make("fast", swarm_.fast);
  make("slow", swarm_.slow);
}

bool World::is_cut(const std::string& node) const {
  const auto it = nodes_.find(node);
  return it != nodes_.end() && tick_ < it->second.cut_until;
}

bool World::kubelet_works(const std::string& node) const {
  return !is_cut(node) && tick_ >= nodes_.at(node).hangs_until;
}

void World::set_ready(const std::string& node, bool ready) {
  nodes_.at(node).ready = ready;
  json object = *store_.find({kNode, "", node});
  object["status"]["conditions"][0]["status"] = ready ? "True" : "Unknown";
  (void)store_.update(object, true);
}

// The API server has an older state again; nodes and all that runs on them go on.
void World::restore_store(int tick) {
  note(std::format("the store is again as it was at tick {}", tick));
  store_.restore(tick);
  restored_at_ = tick_;
  job_ = crds::bsp_job_from_json(*store_.find(kJobKey)).value();
  highest_epoch_ = committed_epoch();
  for (const auto& [epoch, plan] : committed_)
    if (epoch > highest_epoch_) lost_epochs_.insert(epoch);
  if (job_.status.checkpoint)
    for (const crds::StoredSet& set : job_.status.checkpoint->sets) lost_sets_.insert(set.id);
  find_running();
  for (const auto& [name, node] : nodes_) set_ready(name, node.ready);
}

// A kubelet ends what no object gives to its node any more, and shows the rest again.
void World::find_running() {
  std::vector<std::string> lost;
  for (auto& [uid, running] : running_) {
    const kube::Object* const pod = store_.find({kPod, kNameSpace, running.name});
    const bool held =
        pod && kube::metadata_text(*pod, "uid") == uid && text_at(part_at(*pod, "spec"), "nodeName") == running.node;
    running.shown_up = false;
    if (!held) lost.push_back(uid);
  }
  for (const std::string& uid : lost) {
    auto node = running_.extract(uid);
    Running& running = node.mapped();
    running.lost = true;
    node.key() = running.uid += "-lost";
    for (simulated::Pod& seat : running.seats) seat.uid = running.uid;
    running_.insert(std::move(node));
  }
}

std::size_t World::slots_taken(const std::string& node) const {
  std::size_t taken = 0;
  for (const auto& [key, pod] : store_.objects())
    if (key.kind == kPod && text_at(part_at(*pod, "spec"), "nodeName") == node && !has_ended(*pod))
      taken += reconcile::request_of(*pod).ranks().size();
  return taken;
}

void World::schedule(const kube::Key& key, const json& pod) {
  auto [waits, is_new] = waits_.try_emplace(kube::metadata_text(pod, "uid"), tick_ + random(0, 5));
  if (tick_ < waits->second) return;
  waits->second = tick_ + random(5, 20);
  std::vector<std::string> fitting;
  const std::size_t seats = reconcile::request_of(pod).ranks().size();
  for (const auto& [name, node] : nodes_)
    if (slots_taken(name) + seats <= swarm_.slots && reconcile::takes_pods_of(*store_.find({kNode, "", name}), pod))
      fitting.push_back(name);
  json next = pod;
  if (fitting.empty()) {
    next["status"] = {{"phase", "Pending"},
                      {"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "no node fits"}}}}};
    (void)store_.update(next, true);
    return;
  }
  next["spec"]["nodeName"] = fitting[static_cast<std::size_t>(random(0, static_cast<int>(fitting.size()) - 1))];
  note(std::format("{} is placed on {}", key.name, next["spec"]["nodeName"].get<std::string>()));
  (void)store_.update(next, false);
}

void World::start(const json& pod) {
  const std::string uid = kube::metadata_text(pod, "uid");
  Running& running = running_[uid];
  running.name = kube::metadata_text(pod, "name");
  running.uid = uid;
  running.node = text_at(part_at(pod, "spec"), "nodeName");
  ++addresses_;
  running.address = std::format("10.0.{}.{}:{}", addresses_ / 250, addresses_ % 250 + 1, names::kSidecarPort);
  running.up_at = tick_ + random(1, 15);
  const reconcile::PodRequest request = reconcile::request_of(pod);
  const std::vector<std::uint32_t> ranks = request.ranks();
  const bool resumes = part_at(part_at(pod, "metadata"), "annotations").contains(names::kAnnotationCheckpoint);
  running.ends.resize(ranks.size());
  for (std::uint32_t local = 0; local < ranks.size(); ++local) {
    running.rings.push_back(std::make_unique<bsp_ring>());
    simulated::Pod& seat = running.seats.emplace_back();
    seat.name = running.name;
    seat.uid = uid;
    seat.local = seat.status.seat = local;
    seat.seats = static_cast<std::uint32_t>(ranks.size());
    seat.rank = seat.status.rank = ranks[local];
    seat.target = request.target;
    seat.restored_from_set = false;
    seat.up_at = running.up_at;
    seat.forgetful = swarm_.forgetful;
    seat.status.pod = running.name;
    seat.status.version = 1;
    seat.status.memory_bytes = 10'000'000;
    if (request.target || resumes) continue;
    seat.hangs_in_opening = false;
  }
  running.saved.any = false;
  note(std::format("{} starts on {}{}", running.name, running.node, resumes ? " from a set" : ""));
  for (simulated::Pod& seat : running.seats)
    if (resumes) seat.receives_from = "a set";
}

void World::start_sidecar(Running& running) {
  sidecar::Config config;
  config.job = kJobName;
  config.job_uid = job_.metadata.uid;
  for (const simulated::Pod& seat : running.seats) config.seats.push_back(seat.rank);
  config.ranks = swarm_.ranks;
  config.pod = running.name;
  config.run_dir = std::format("/dev/shm/simulate-cluster-{}/{}", ::getpid(), running.uid);
  std::filesystem::create_directories(config.run_dir + "/sidecar");
  for (std::uint32_t seat = 0; seat < running.seats.size(); ++seat)
    std::filesystem::create_directories(config.seat_dir(seat));
  running.network = std::make_unique<Transport>(
      *this, running.node, [this, &running] { return is_cut(running.node) || tick_ < running.sidecar_down_until; });
  running.sidecar = std::make_unique<Sidecar>(
      *running.network, std::move(config), running.rings, running.saved,
      Sidecar::Hooks{
          .computes =
              [&running] {
                return std::ranges::any_of(running.seats, [](const auto& seat) { return seat.computes(); });
              },
          .end_program =
              [this, &running](const std::string& why) {
                note(std::format("the fence ends {}: {}", running.name, why));
                for (simulated::Pod& seat : running.seats)
                  if (seat.computes()) end(seat, -1, 9, true);
              },
          .tell_init = [&running](net::SteadyTime fresh) { running.fresh = std::max(running.fresh, fresh); }});
  running.sidecar->heeds_tokens = !swarm_.old_sidecars;
}

// One tick of a pod on its node.
void World::keep(Running& running) {
  const bool works = kubelet_works(running.node);
  const kube::Object* const pod = store_.find({kPod, kNameSpace, running.name});
  const bool has_object = pod && kube::metadata_text(*pod, "uid") == running.uid;
  if (tick_ >= running.up_at && !running.sidecar && tick_ >= running.sidecar_down_until) {
    const bool first = running.fresh == net::SteadyTime{};
    start_sidecar(running);
    running.fresh = std::max(running.fresh, first ? steady_now() : net::SteadyTime{});
    for (simulated::Pod& seat : running.seats) {
      auto& s = seat.status;
      if (s.init_connected || seat.process != Process::kNone) continue;
      s.init_connected = true;
      if (!seat.target && seat.receives_from.empty())
        seat.process = Process::kStarting, s.phase = wire::RankPhase::kStarting;
    }
  }
  if (running.sidecar) {
    running.network->take_in();
    running.sidecar->run_due(running.seats);
  }
  // bsp-init stops a program for which no sidecar vouches; here it ends it, so that it is seen.
  const auto limit = fencing::stop_after(fencing::kLimit);
  if (job_.status.epoch && swarm_.ranks > 1 && running.fresh != net::SteadyTime{} &&
      steady_now() >= running.fresh + limit)
    for (simulated::Pod& seat : running.seats)
      if (seat.process == Process::kRunning) {
        note("bsp-init ends " + name_of(seat.seat()));
        end(seat, -1, 9, false);
      }
  const bool goes = !has_object || kube::is_being_deleted(*pod);
  if (goes && works && running.kill_at < 0) {
    // Of the programs that trap SIGTERM, some end at once all the same, so that others outlive them.
    const bool traps = swarm_.traps_sigterm && running.runs() && chance(0.5);
    running.kill_at = tick_ + (traps ? random(5, kGrace) : random(0, 5));
    for (simulated::Pod& seat : running.seats) seat.gone_at = 1 << 30;  // it is asked to end
  }
  if (running.kill_at >= 0 && tick_ >= running.kill_at && running.removed_at < 0) {
    for (simulated::Pod& seat : running.seats)
      if (seat.process != Process::kNone && seat.process != Process::kEnded) end(seat, 0, 15, true);
    running.removed_at = tick_ + random(1, 5);
  }
  if (has_object && works && tick_ >= running.up_at) show(running, *pod);
}

void World::show(Running& running, const json& pod) {
  std::size_t ended = 0;
  for (const Running::End& end : running.ends) ended += end.at >= 0 && tick_ >= end.at;
  if (running.shown_up && ended == running.shown_ends) return;
  running.shown_up = true;
  running.shown_ends = ended;
  json next = pod;
  json& status = next["status"];
  bool failed = false;
  status = {{"phase", "Running"}, {"podIP", running.address.substr(0, running.address.find(':'))}};
  for (std::uint32_t local = 0; local < running.ends.size(); ++local) {
    const Running::End& end = running.ends[local];
    json state{{"running", json::object()}};
    if (end.at >= 0 && tick_ >= end.at) {
      failed |= end.code != 0;
      state = {{"terminated", {{"exitCode", end.code}, {"reason", end.code ? "Error" : "Completed"}, {"message", ""}}}};
    }
    status["containerStatuses"].push_back({{"name", container_of(local)}, {"state", state}});
  }
  status["initContainerStatuses"] = {{{"name", "sidecar"}, {"state", {{"running", json::object()}}}}};
  if (ended == running.ends.size()) {
    status["phase"] = failed ? "Failed" : "Succeeded";
    running.sidecar_down_until = 1 << 30;  // the kubelet ends it with the others
  }
  (void)store_.update(next, true);
}

void World::run_nodes() {
  for (auto& [name, node] : nodes_) {
    const bool silent = !kubelet_works(name);
    if (silent && node.unready_at == 0) node.unready_at = tick_ + kNoticed;
    if (!silent) node.unready_at = 0;
    if (const bool ready = !silent || tick_ < node.unready_at; ready != node.ready) set_ready(name, ready);
  }
  std::vector<kube::Key> unplaced;
  std::vector<std::string> placed;
  std::vector<kube::Key> never_begun;  // and never will
  for (const auto& [key, pod] : store_.objects()) {
    if (key.kind != kPod) continue;
    if (text_at(part_at(*pod, "spec"), "nodeName").empty())
      unplaced.push_back(key);
    else if (!running_.contains(kube::metadata_text(*pod, "uid")) && !kube::is_being_deleted(*pod)) {
      if (!has_ended(*pod)) placed.push_back(key.name);
    } else if (!running_.contains(kube::metadata_text(*pod, "uid")) &&
               kubelet_works(text_at(part_at(*pod, "spec"), "nodeName")))
      never_begun.push_back(key);
  }
  for (const kube::Key& key : never_begun) store_.erase(key);
  for (const kube::Key& key : unplaced) schedule(key, json(*store_.find(key)));
  for (const std::string& name : placed) {
    const kube::Object& pod = *store_.find({kPod, kNameSpace, name});
    if (kubelet_works(text_at(part_at(pod, "spec"), "nodeName"))) start(json(pod));
  }
  for (auto& [uid, running] : running_) keep(running);
  std::erase_if(running_, [&](const auto& entry) {
    const Running& running = entry.second;
    if (running.removed_at < 0 || tick_ < running.removed_at || !kubelet_works(running.node)) return false;
    const kube::Key key{kPod, kNameSpace, running.name};
    const kube::Object* const pod = store_.find(key);
    if (pod && kube::metadata_text(*pod, "uid") == running.uid) {
      json next = *pod;
      next["status"]["phase"] = "Failed";
      if (kube::is_being_deleted(*pod))
        store_.erase(key);
      else
        (void)store_.update(next, true);  // nobody knows of its deletion any more
    }
    note(running.name + " is gone");
    return true;
  });
}

}  // namespace bsp::simulation
