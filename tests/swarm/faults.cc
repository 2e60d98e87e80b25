#include "tests/swarm/faults.h"

#include <algorithm>
#include <format>
#include <iterator>

#include "base/json/fields.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "tests/swarm/operator.h"

namespace bsp::simulation {

using nlohmann::json;
using simulated::Process;

namespace {
constexpr const char* kInternal = "internal";
}  // namespace

std::uint32_t Faults::moved() const {
  std::uint32_t moved = 0;
  for (const auto& [key, object] : world_.store_.objects())
    moved += key.kind == kRankMigration && text_at(part_at(*object, "status"), "phase") == "Succeeded";
  return moved;
}

Running* Faults::any_pod() {
  auto& running = world_.running_;
  if (running.empty()) return nullptr;
  return &std::next(running.begin(), world_.random(0, static_cast<int>(running.size()) - 1))->second;
}

// Mostly the one that leads.
Operator* Faults::any_operator() {
  auto& operators = world_.operators_;
  if (world_.chance(0.8))
    for (auto& one : operators)
      if (one->leads()) return one.get();
  return operators[static_cast<std::size_t>(world_.random(0, static_cast<int>(operators.size()) - 1))].get();
}

void Faults::strike() {
  if (world_.tick_ >= readable_at_) make_readable();
  if (world_.tick_ >= uncordon_at_) cordon(false);
  if (world_.tick_ >= world_.swarm_.faults_until) return heal();
  if (world_.chance(world_.swarm_.moves)) ask_for_move();
  if (world_.swarm_.kinds.empty() || !world_.chance(world_.swarm_.faults)) return;
  const auto& kinds = world_.swarm_.kinds;
  strike(*std::next(kinds.begin(), world_.random(0, static_cast<int>(kinds.size()) - 1)));
}

void Faults::heal() {
  if (std::exchange(healed_, true)) return;
  world_.note("the faults are over");
  readable_at_ = uncordon_at_ = 0;
  for (auto& [name, node] : world_.nodes_) {
    node.cut_until = std::min(node.cut_until, world_.tick_);
    node.hangs_until = std::min(node.hangs_until, world_.tick_);
  }
  for (auto& [uid, running] : world_.running_) {
    if (running.sidecar) running.sidecar->disk_full = false;
    for (simulated::Pod& seat : running.seats)
      seat.storage_fails = seat.storage_hangs = seat.dies_at_once = seat.criu_fails = false;
  }
}

void Faults::ask_for_move() {
  if (world_.job_.status.phase != crds::JobPhase::kRunning && world_.job_.status.phase != crds::JobPhase::kMigrating)
    return;
  const int rank = world_.random(0, static_cast<int>(world_.swarm_.ranks) - 1);
  const char* set = world_.random(0, 1) == 0 ? "slow" : "fast";
  (void)world_.store_.create(
      {{"apiVersion", kRankMigration.api_version},
       {"kind", kRankMigration.kind},
       {"metadata", {{"name", std::format("by-hand-{}", ++migrations_)}, {"namespace", kNameSpace}}},
       {"spec", {{"job", kJobName}, {"rank", rank}, {"targetSet", set}}}});
}

void Faults::make_unreadable() {
  const json* const job = world_.store_.find(kJobKey);
  if (!job || made_unreadable_ != 0) return;
  json next = *job;
  readable_ = part_at(part_at(*job, "status"), kInternal);
  if (readable_.is_null()) return;
  next["status"][kInternal] = "{";
  const auto written = world_.store_.update(next, true);
  if (!written) return;
  made_unreadable_ = 1;
  readable_at_ = world_.tick_ + world_.random(10, 300);
}

// As the version does that can read it.
void Faults::make_readable() {
  if (std::exchange(made_unreadable_, 0) == 0) return;
  const json* const job = world_.store_.find(kJobKey);
  if (!job || text_at(part_at(*job, "status"), kInternal) != "{") return;
  json next = *job;
  next["status"][kInternal] = readable_;
  world_.note("the job is readable again");
  (void)world_.store_.update(next, true);
}

void Faults::cordon(bool on) {
  if (on == !cordoned_.empty()) return;
  if (on) {
    cordoned_ = std::next(world_.nodes_.begin(), world_.random(0, static_cast<int>(world_.nodes_.size()) - 1))->first;
    uncordon_at_ = world_.tick_ + world_.random(20, 300);
  }
  json node = *world_.store_.find({kNode, "", cordoned_});
  node["spec"]["unschedulable"] = on;
  if (!on) cordoned_.clear();
  (void)world_.store_.update(node, false);
}

// Once. Whoever has cordoned a node looks after it; that the job can't be read is another fault.
void Faults::restore_store(int tick) {
  if (restored_) return;
  const auto job = world_.store_.at(kJobKey, tick);
  if (!job || text_at(part_at(*job, "status"), kInternal) == "{") return;
  restored_ = true;
  world_.restore_store(tick);
  for (const auto& [name, node] : world_.nodes_) {
    json object = *world_.store_.find({kNode, "", name});
    object["spec"]["unschedulable"] = name == cordoned_;
    (void)world_.store_.update(object, false);
  }
}

void Faults::strike(Fault fault) {
  ++struck_;
  World& w = world_;
  Running* const pod = any_pod();
  Operator* const one = any_operator();
  const auto seconds = [&](int low, int high) { return w.random(low * kTicksPerSecond, high * kTicksPerSecond); };
  const std::string on_pod = pod ? pod->name : "";
  w.note(std::format("FAULT {} ({})", to_string(fault), on_pod));
  switch (fault) {
    case Fault::kProgramDies:
      w.end_program(static_cast<std::uint32_t>(w.random(0, static_cast<int>(w.swarm_.ranks) - 1)), 1, 0,
                    w.random(0, 1) == 0);
      break;
    case Fault::kForceDelete:
      if (pod) w.store_.erase({kPod, kNameSpace, pod->name});
      break;
    case Fault::kDelete:
      if (pod) (void)w.store_.remove({kPod, kNameSpace, pod->name}, "");
      break;
    case Fault::kNodeCut: {
      auto& node = std::next(w.nodes_.begin(), w.random(0, static_cast<int>(w.nodes_.size()) - 1))->second;
      node.cut_until = w.tick_ + seconds(1, 120);
      break;
    }
    case Fault::kSidecarRestarts:
      if (pod && pod->sidecar) {
        pod->sidecar.reset();
        pod->sidecar_down_until = w.tick_ + w.random(1, 50);
        w.restart_sidecar(pod->name, pod->sidecar_down_until - w.tick_);
      }
      break;
    case Fault::kSidecarDiskFull:
      if (pod && pod->sidecar) pod->sidecar->disk_full = !pod->sidecar->disk_full;
      break;
    case Fault::kCopyDies:
      for (auto& [uid, running] : w.running_)
        for (simulated::Pod& seat : running.seats)
          if (seat.target && (seat.process == Process::kNone || seat.process == Process::kRestored))
            seat.dies_at_once = true;
      break;
    case Fault::kCriuFails:
      if (pod) pod->seats.front().criu_fails = !pod->seats.front().criu_fails;
      break;
    case Fault::kStorageFails:
      if (pod)
        for (simulated::Pod& seat : pod->seats) seat.storage_fails = !seat.storage_fails;
      break;
    case Fault::kOperatorDies:
      one->die(w.random(1, 60));
      break;
    case Fault::kOperatorSleeps:
      one->sleep(seconds(1, 60));
      break;
    case Fault::kOperatorCutOff:
      one->cut_off(seconds(1, 40));
      break;
    case Fault::kApiSilent:
      one->lose_api(seconds(1, 40));
      break;
    case Fault::kWatchStalls:
      one->stall_watch(seconds(1, 40));
      break;
    case Fault::kUnreadable:
      make_unreadable();
      break;
    case Fault::kCancelled: {
      std::vector<kube::Key> open;
      for (const auto& [key, object] : w.store_.objects())
        if (key.kind == kRankMigration && !part_at(*object, "status").contains("completionTime")) open.push_back(key);
      if (!open.empty())
        (void)w.store_.remove(open[static_cast<std::size_t>(w.random(0, static_cast<int>(open.size()) - 1))], "");
      break;
    }
    case Fault::kCordon:
      cordon(true);
      break;
    case Fault::kKubeletHangs:
      if (!pod) break;
      w.nodes_.at(pod->node).hangs_until = w.tick_ + seconds(5, 90);
      w.store_.erase({kPod, kNameSpace, pod->name});
      break;
    case Fault::kStoreRestored:
      restore_store(std::max(1, w.tick_ - w.random(1, w.random(2, 300))));
      break;
  }
}

}  // namespace bsp::simulation
