#include "tests/simulated_cluster/cluster.h"

#include <algorithm>
#include <format>
#include <utility>

#include "base/json/fields.h"

namespace bsp::simulated {

using nlohmann::json;
using wire::RankPhase;
using wire::TransferPhase;

void Cluster::note(const std::string& what) { trace += std::format("{:6} {}\n", tick_, what); }
void Cluster::violate(const std::string& what) {
  if (violation.empty()) violation = std::format("at tick {}: {}", tick_, what);
  note("VIOLATION " + what);
}

Pod* Cluster::find(const Seat& seat) {
  Pod* found = nullptr;
  for_each_pod([&](Pod& pod) {
    if (pod.seat() == seat) found = &pod;
  });
  return found;
}

std::vector<Pod*> Cluster::pods_where(const std::function<bool(const Pod&)>& f) {
  std::vector<Pod*> pods;
  for_each_pod([&](Pod& pod) {
    if (f(pod)) pods.push_back(&pod);
  });
  return pods;
}

void Cluster::advance() {
  pass_edge();
  for_each_pod([&](Pod& pod) { advance_pod(pod); });
  open_epochs();
  check_copies();
}

void Cluster::check_copies() {
  std::map<std::uint32_t, int> copies;
  for_each_pod([&](Pod& pod) {
    const bool counts = counts_starting ? pod.computes() : pod.process == Process::kRunning;
    if (counts && can_compute(pod) && ++copies[pod.rank] > 1) violate(std::format("rank {} computes twice", pod.rank));
  });
}

// --- The program ---------------------------------------------------------------------------------------------
// All ranks pass an edge together, as a barrier makes them; the gate is read there.
void Cluster::pass_edge() {
  if (tick_ < next_edge_at_) return;
  const auto ranks =
      pods_where([](const Pod& p) { return p.process == Process::kRunning && !p.opening && p.stop_at < 0; });
  if (ranks.size() != program_.ranks) return;
  for (const Pod* pod : ranks)
    if (tick_ < pod->cut_off_until || pod->status.epoch != ranks[0]->status.epoch) return;
  std::size_t voters = 0, held = 0;
  bool drop = false;
  for (Pod* pod : ranks) {
    const bool at = pod->gate != Gate::kNone && superstep_ >= pod->status.gate_superstep;
    const bool waits = at && pod->gate == Gate::kArmed;
    held += waits;
    voters += at && !waits;
    drop |= at && pod->gate == Gate::kDropping;
    pod->status.phase = waits ? RankPhase::kAtGate : RankPhase::kRunning;
  }
  if (held > 0) return;
  if (voters > 0 && voters < ranks.size()) return violate("only some ranks vote at the gate");
  if (voters > 0 && !drop && !never_migratable) return close_epoch(ranks);
  for (Pod* pod : ranks) {
    pod->status.blocked_reason = voters > 0 && !drop ? "not migratable now: an open file" : "";
    if (voters == 0 || !drop) continue;
    pod->gate_dropped = pod->status.gate_superstep;
    clear_gate(*pod);
  }
  if (superstep_ >= program_.supersteps) {
    for (Pod* pod : ranks) end(*pod, 0, 0, true);
    return;
  }
  ++superstep_;
  for (Pod* pod : ranks) pod->status.completed = superstep_;
  next_edge_at_ = tick_ + random(program_.pace.superstep);
}

void Cluster::close_epoch(const std::vector<Pod*>& ranks) {
  for (Pod* pod : ranks) {
    pod->status.phase = RankPhase::kClosing;
    pod->status.gate_reached_ns = stamp();
    pod->stop_at = tick_ + random(program_.pace.close);
  }
}

void Cluster::end(Pod& pod, int exit_code, int signal, bool reports) {
  note(std::format("{} ends with {} signal {}", name_of(pod.seat()), exit_code, signal));
  pod.process = Process::kEnded;
  pod.opening = false;
  pod.enters_at = -1;
  pod.stop_at = -1;
  container_ended(pod, signal ? 128 + signal : exit_code);
  if (!reports) {
    pod.silent_until = 1 << 30;
    return;
  }
  auto& s = pod.status;
  s.phase = RankPhase::kExited;
  s.exit_code = signal ? -1 : exit_code;
  s.exit_signal = signal;
  s.init_connected = false;
  ++s.version;
}

void Cluster::end_program(std::uint32_t rank, int exit_code, int signal, bool reports) {
  for (Pod* pod :
       pods_where([&](const Pod& p) { return p.rank == rank && (p.computes() || p.process == Process::kStopped); }))
    end(*pod, exit_code, signal, reports);
}

// --- Pods ------------------------------------------------------------------------------------------------------
void Cluster::advance_pod(Pod& pod) {
  if (pod.enters_at >= 0 && tick_ >= pod.enters_at && pod.process == Process::kRunning) {
    pod.enters_at = -1;
    if (pod.dies_at_once) return end(pod, -1, 11, true);
    pod.status.epoch = pod.entering;
    ++pod.status.version;
  }
  if (pod.stop_at >= 0 && tick_ >= pod.stop_at) return stop(pod);
  if (pod.save_at >= 0 && tick_ >= pod.save_at) advance_save(pod);
  if (pod.transfer_at < 0 || tick_ < pod.transfer_at) return;
  pod.transfer_at = -1;
  auto& t = pod.status.transfer;
  ++pod.status.version;
  if (t.phase == TransferPhase::kDumping) return end_dump(pod);
  if (t.phase == TransferPhase::kReceiving) return end_load(pod);
  if (t.phase != TransferPhase::kRestoring) return;
  if (pod.criu_fails) {
    t.phase = TransferPhase::kFailed;
    t.error = "criu was killed";
    return;
  }
  t.phase = TransferPhase::kRestored;
  t.restore_ns = 60'000'000;
  pod.restored_from_set = t.migration.starts_with("set-");
  pod.process = Process::kRestored;
  pod.status.phase = RankPhase::kStopped;
  pod.status.mpi_initialized = true;
}

void Cluster::stop(Pod& pod) {
  pod.stop_at = -1;
  pod.process = Process::kStopped;
  pod.status.phase = RankPhase::kStopped;
  pod.status.stopped_ns = stamp();
  ++pod.status.version;
  const json save = std::exchange(pod.save_order, json());
  if (!save.is_null() && pod.gate == Gate::kCommitted && pod.answers(tick_) && start_save(pod, save)) begin_save(pod);
  const json order = std::exchange(pod.order, json());
  if (order.is_null() || pod.gate != Gate::kCommitted || !pod.answers(tick_)) return;
  start_dump(pod, order);
  begin_transfer(pod, program_.pace.dump);
}

// First criu has ended, and the rest of its stream is under way; then the target has all of it.
void Cluster::end_dump(Pod& source) {
  auto& t = source.status.transfer;
  const auto targets = pods_where([&](const Pod& p) {
    return p.target && p.status.transfer.migration == t.migration && p.receives_from == source.name;
  });
  Pod* target = targets.empty() ? nullptr : targets.front();
  const bool ok = !source.criu_fails && source.process == Process::kStopped && target && target->answers(tick_) &&
                  target->process == Process::kNone && target->status.transfer.phase == TransferPhase::kReceiving;
  if (!ok) {
    t.phase = TransferPhase::kFailed;
    t.error = "the stream broke";
    return;
  }
  if (t.dump_ns == 0) {
    t.dump_ns = 80'000'123;
    return begin_transfer(source, program_.pace.stream);
  }
  t.phase = TransferPhase::kSent;
  target->status.program_features = source.status.program_features;
  t.bytes = target->status.transfer.bytes = 50'000'000;
  auto& received = target->status.transfer;
  received.transfer_ns = 100'000'000;
  received.phase = target->restores ? TransferPhase::kRestoring : TransferPhase::kReceived;
  if (target->restores) begin_transfer(*target, program_.pace.restore);
  ++target->status.version;
}

void Cluster::end_load(Pod& pod) {
  auto& t = pod.status.transfer;
  const auto image = std::ranges::find_if(storage, [&](const auto& entry) {
    return wire::set_name(entry.first.first) == t.migration && entry.first.second == pod.rank;
  });
  const bool whole =
      image != storage.end() && (image->second.base == 0 || storage.contains({image->second.base, pod.rank}));
  if (!whole || pod.storage_fails) {
    t.phase = TransferPhase::kFailed;
    t.unusable = !whole;
    t.error = t.unusable ? "the stored image is damaged" : "the checkpoint storage does not answer";
    return;
  }
  if (!pod.restore_fails.empty()) {
    t.phase = TransferPhase::kFailed;
    t.suspect = true;
    t.error = pod.restore_fails;
    return;
  }
  for (const auto& [key, other] : storage)
    if (key.first == image->first.first &&
        (other.superstep != image->second.superstep || other.epoch != image->second.epoch))
      violate("the images of a set are of two gates");
  loaded_superstep_ = image->second.superstep;
  t.bytes = 50'000'000;
  t.phase = TransferPhase::kRestoring;
  begin_transfer(pod, program_.pace.restore);
}

// As sidecar/agent/stored_images.cc does; now and then so much has changed that the image is whole.
void Cluster::share_blocks(Pod& pod, wire::SaveStatus& save) {
  const bool builds = pod.known_base != 0 && pod.known_base == pod.save_base &&
                      !(some_are_whole && (pod.rank + 3 * save.set) % 11 == 0);
  save.base = builds ? pod.known_base : 0;
  save.stored = builds ? 5'000'000 : 50'000'000;
  if (!builds) pod.known_base = wire::base_of(save.set) == save.set ? save.set : 0;
}

// As sidecar/storage/storage.h says.
void Cluster::keep_sets(const json& fields) {
  const auto below = count_at<std::uint64_t>(fields, "below");
  const json& keep = part_at(fields, "keep");
  const json& bases = part_at(fields, "bases");
  std::erase_if(storage, [&](const auto& entry) {
    const auto [set, rank] = entry.first;
    if (set >= below) return false;
    const bool is_kept = std::ranges::contains(keep, json(set));
    if (is_kept && (removes_as_older || !std::ranges::contains(bases, json(set)))) return false;
    if (removes_as_older) return true;
    const auto may_build_on_it = [&](std::uint64_t other) {
      const auto image = storage.find({other, rank});
      return other != set && wire::base_of(other) == set && (image == storage.end() || image->second.base != 0);
    };
    return std::ranges::none_of(keep, [&](const json& other) {
      return !std::ranges::contains(bases, other) && may_build_on_it(other.get<std::uint64_t>());
    });
  });
}

// First its image is in memory, then in the storage, whatever the program does meanwhile.
void Cluster::advance_save(Pod& pod) {
  pod.save_at = -1;
  auto& save = *pod.status.save;
  ++pod.status.version;
  if (save.phase == wire::SavePhase::kDumping) {
    if (pod.criu_fails) {
      save.phase = wire::SavePhase::kFailed;
      save.error = "criu was killed";
      return;
    }
    save.phase = wire::SavePhase::kDumped;
    save.bytes = 50'000'000;
    pod.saved_superstep = superstep_;
    pod.saved_epoch = pod.status.epoch;
    save.dump_ns = 80'000'123;
    if (!pod.storage_hangs) pod.save_at = tick_ + random(program_.pace.stream);
  } else if (pod.storage_fails) {
    save.phase = wire::SavePhase::kFailed;
    save.error = "the checkpoint storage is full";
  } else {
    save.phase = wire::SavePhase::kStored;
    save.store_ns = 500'000'000;
    save.digest = std::string(64, static_cast<char>('0' + pod.rank % 10));
    if (shares_blocks) share_blocks(pod, save);
    storage[{save.set, pod.rank}] = {pod.saved_superstep, pod.saved_epoch, save.base};
  }
}

// An epoch opens when all ranks of its plan are in the opening.
void Cluster::open_epochs() {
  const auto opening =
      pods_where([](const Pod& p) { return p.opening && p.enters_at < 0 && p.process == Process::kRunning; });
  if (opening.size() != program_.ranks) return;
  for (const Pod* pod : opening)
    if (pod->status.epoch != opening[0]->status.epoch) return;
  for (Pod* pod : opening) {
    if (pod->hangs_in_opening) continue;
    auto& s = pod->status;
    pod->opening = false;
    if (!s.mpi_initialized) superstep_ = 0;  // a new attempt, from its beginning
    if (pod->restored_from_set) superstep_ = loaded_superstep_, pod->restored_from_set = false;
    s.phase = RankPhase::kRunning;
    s.mpi_initialized = true;
    s.first_compute_ns = stamp();
    ++s.version;
  }
}

// --- Sidecars --------------------------------------------------------------------------------------------------
Result<json> Cluster::ask(Pod& pod, std::string_view verb, const std::shared_ptr<const json>& sent) {
  const json& fields = *sent;
  if (verb == wire::kArmGate && pod.gate == Gate::kCommitted && pod.process == Process::kRunning &&
      !messages_come_again && !of_the_dead)
    violate("a gate is armed where one is committed");
  if (verb == wire::kDiscard && pod.target && pod.computes() && !may_be_open(pod.status.admitted_epoch))
    violate("a computing copy is discarded");
  if (verb == wire::kPrepareEpoch && plan_fields_ != sent) {
    auto plan = wire::epoch_plan_from_json(fields);
    plan_ = plan ? std::make_shared<const wire::EpochPlan>(std::move(*plan)) : nullptr;
    plan_fields_ = sent;
  }
  if (verb == wire::kKeepSets) keep_sets(fields);
  Answer answer = answer_of(pod, verb, fields, verb == wire::kPrepareEpoch ? plan_ : nullptr);
  if (verb == wire::kPrepareEpoch && pod.seats > 1)
    for (Pod* other : pods_where([&](const Pod& p) { return p.name == pod.name && p.local != pod.local; }))
      (void)answer_of(*other, verb, fields, plan_);
  if (!answer.result) return std::move(answer.result);
  switch (answer.effect) {
    case Effect::kContinues: {
      const auto epoch = count_at<std::uint64_t>(fields, "epoch");
      if (!may_be_open(epoch))
        violate(std::format("epoch {} is opened, and epoch {} is committed", epoch, committed_epoch()));
      note(std::format("{} continues in epoch {}", name_of(pod.seat()), epoch));
      if (pod.status.transfer.phase == TransferPhase::kDumping) pod.status.transfer = {}, pod.transfer_at = -1;
      if (auto& save = pod.status.save; save && save->phase == wire::SavePhase::kDumping) {
        save->phase = wire::SavePhase::kFailed;
        save->error = "the dump was abandoned";
        pod.save_at = -1;
      }
      pod.process = Process::kRunning;
      pod.opening = true;
      pod.entering = epoch;
      pod.enters_at = tick_ + random(program_.pace.enter);
      pod.status.phase = RankPhase::kOpening;
      break;
    }
    case Effect::kDumps:
      note(pod.name + " is asked to send");
      begin_transfer(pod, program_.pace.dump);
      break;
    case Effect::kRestores:
      begin_transfer(pod, program_.pace.restore);
      break;
    case Effect::kSaves:
      begin_save(pod);
      break;
    case Effect::kLoads:
      begin_transfer(pod, program_.pace.stream);
      break;
    case Effect::kEnds:
      end(pod, -1, 9, true);
      break;
    case Effect::kNone:
      break;
  }
  return std::move(answer.result);
}

void Cluster::restart_sidecar(const std::string& pod, int down_for) {
  note("the sidecar restarts: " + pod);
  for (Pod* seat : pods_where([&](const Pod& p) { return p.name == pod; })) restart_for(*seat, down_for);
}

void Cluster::restart_for(Pod& pod, int down_for) {
  pod.silent_until = std::max(pod.silent_until, tick_ + down_for);
  pod.order = nullptr;
  pod.save_order = nullptr;
  pod.status.save.reset();  // its memory has gone with it
  pod.known_base = 0;
  pod.save_at = -1;
  pod.restores = false;
  auto& t = pod.status.transfer;
  if (t.phase != TransferPhase::kReceiving && t.phase != TransferPhase::kDumping) return;
  t.phase = TransferPhase::kFailed;
  t.error = "the sidecar was restarted in the middle of the stream";
  pod.transfer_at = -1;
}

}  // namespace bsp::simulated
