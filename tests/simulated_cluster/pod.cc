#include "tests/simulated_cluster/pod.h"

#include <algorithm>
#include <format>
#include <utility>

#include "base/json/fields.h"
#include "crds/reflect.h"

namespace bsp::simulated {

using nlohmann::json;
using wire::RankPhase;
using wire::TransferPhase;

namespace {

bool stopped(const Pod& pod) { return pod.process == Process::kStopped || pod.process == Process::kRestored; }

Answer refused(ErrorCode code, std::string message) {
  return {.result = fail(code, std::move(message)), .effect = Effect::kNone};
}
Answer ok(Effect effect = Effect::kNone, json fields = json::object()) {
  return {.result = std::move(fields), .effect = effect};
}

// --- Epochs --------------------------------------------------------------------------------------------------
Answer prepare_epoch(Pod& pod, const json& fields, std::shared_ptr<const wire::EpochPlan> plan) {
  if (!plan) {
    auto read = wire::epoch_plan_from_json(fields);
    if (!read) return {.result = std::unexpected(read.error()), .effect = Effect::kNone};
    plan = std::make_shared<const wire::EpochPlan>(std::move(*read));
  }
  auto& s = pod.status;
  if (s.admitted_epoch != 0 && plan->epoch <= s.admitted_epoch) {
    const auto known = pod.prepared.find(plan->epoch);
    if (known != pod.prepared.end() && (known->second == plan || *known->second == *plan)) return ok();
    return refused(ErrorCode::kConflict, std::format("epoch {} is open", s.admitted_epoch));
  }
  const std::uint64_t epoch = plan->epoch;
  for (const wire::Member& member : plan->members)
    if (pod.seats > 1 && seat_of(member) == pod.seat()) pod.rank = s.rank = member.rank;
  pod.prepared.insert_or_assign(epoch, std::move(plan));
  s.prepared_epoch = pod.prepared.rbegin()->first;
  return ok();
}

Answer open_epoch(Pod& pod, const json& fields) {
  const auto epoch = count_at<std::uint64_t>(fields, "epoch");
  auto& s = pod.status;
  if (s.admitted_epoch > epoch) return refused(ErrorCode::kConflict, "a later one is open");
  if (s.admitted_epoch < epoch) {
    if (s.prepared_epoch > epoch) return refused(ErrorCode::kConflict, "a later one was prepared since");
    const auto plan = pod.prepared.find(epoch);
    if (plan == pod.prepared.end()) return refused(ErrorCode::kNotFound, "it is not prepared");
    const auto& members = plan->second->members;
    if (std::ranges::none_of(members, [&](const auto& member) { return seat_of(member) == pod.seat(); }))
      return refused(ErrorCode::kRefused, "it names another seat");
    s.admitted_epoch = epoch;
    clear_gate(pod);
    if (pod.followed != wire::Token{}) pod.gate_over = pod.followed;
    pod.prepared.erase(pod.prepared.begin(), plan);
  }
  const bool due = (stopped(pod) && s.epoch < epoch) || pod.process == Process::kStarting;
  return ok(due ? Effect::kContinues : Effect::kNone);
}

// --- The gate ------------------------------------------------------------------------------------------------
Answer arm_gate(Pod& pod, std::uint64_t superstep) {
  if (superstep == 0) return refused(ErrorCode::kInvalid, "a gate needs a superstep of at least 1");
  if (pod.process == Process::kEnded) return refused(ErrorCode::kRefused, "the program has ended");
  if (pod.gate == Gate::kCommitted || pod.gate == Gate::kDropping) return refused(ErrorCode::kConflict, "committed");
  pod.gate = Gate::kArmed;
  pod.status.gate_superstep = superstep;
  const std::uint64_t completed = pod.status.completed;
  return ok(Effect::kNone, {{"completed", completed}, {"late", completed >= superstep}});
}

Answer commit_gate(Pod& pod, std::uint64_t superstep, const json& fields) {
  auto& s = pod.status;
  if (pod.gate == Gate::kNone && superstep > s.completed) {  // the arm was lost
    pod.gate = Gate::kArmed;
    s.gate_superstep = superstep;
  }
  if (pod.gate == Gate::kNone || s.gate_superstep != superstep) return refused(ErrorCode::kConflict, "no such gate");
  if (pod.gate == Gate::kDropping) return refused(ErrorCode::kConflict, "it is being dropped");
  pod.gate = Gate::kCommitted;
  s.gate_committed = true;
  pod.order = pod.forgetful ? json() : part_at(fields, "send");
  pod.save_order = pod.forgetful ? json() : part_at(fields, "save");
  return ok();
}

Answer cancel_gate(Pod& pod, std::uint64_t superstep) {
  if (superstep != 0 && pod.status.gate_superstep != superstep) return ok();
  if (pod.gate == Gate::kCommitted)
    pod.gate = Gate::kDropping;
  else if (pod.gate == Gate::kArmed)
    clear_gate(pod);
  return ok();
}

// --- The checkpoint --------------------------------------------------------------------------------------------
Answer receive(Pod& pod, const json& fields) {
  auto& t = pod.status.transfer;
  const std::string migration = text_at(fields, "migration"), from = text_at(fields, "from_pod");
  if (t.phase != TransferPhase::kIdle && t.phase != TransferPhase::kFailed) {
    const bool source = t.phase == TransferPhase::kDumping || t.phase == TransferPhase::kSent;
    if (!source && t.migration == migration && pod.receives_from == from) return ok();
    return refused(ErrorCode::kConflict, std::format("this pod takes part in migration {}", t.migration));
  }
  pod.receives_from = from;
  pod.known_base = 0;  // another rank's, or of this one before it was elsewhere
  pod.restores = !pod.forgetful && flag_at(fields, "restore", false);
  t = {};
  t.migration = migration;
  t.phase = TransferPhase::kReceiving;
  return ok();
}

Answer send(Pod& pod, const json& fields) {
  const auto& t = pod.status.transfer;
  const bool under_way = t.migration == text_at(fields, "migration") &&
                         (t.phase == TransferPhase::kDumping || t.phase == TransferPhase::kSent);
  if (under_way) return ok();
  if (!stopped(pod)) return refused(ErrorCode::kConflict, "the program is not stopped at a gate");
  start_dump(pod, fields);
  return ok(Effect::kDumps);
}

Answer restore(Pod& pod, const json& fields) {
  auto& t = pod.status.transfer;
  const bool same = t.migration == text_at(fields, "migration");
  if (same && (t.phase == TransferPhase::kRestoring || t.phase == TransferPhase::kRestored)) return ok();
  if (!same || t.phase != TransferPhase::kReceived) return refused(ErrorCode::kConflict, "nothing was received");
  t.phase = TransferPhase::kRestoring;
  return ok(Effect::kRestores);
}

Answer save(Pod& pod, const json& fields) {
  const bool begun = pod.status.save && pod.status.save->set == count_at<std::uint64_t>(fields, "set");
  if (!begun && !stopped(pod)) return refused(ErrorCode::kConflict, "the program is not stopped at a gate");
  return ok(start_save(pod, fields) ? Effect::kSaves : Effect::kNone);
}

Answer load(Pod& pod, const json& fields) {
  auto& t = pod.status.transfer;
  const std::string name = wire::set_name(count_at<std::uint64_t>(part_at(fields, "image"), "set"));
  if (t.phase != TransferPhase::kIdle && t.phase != TransferPhase::kFailed)
    return t.migration == name ? ok() : refused(ErrorCode::kConflict, "this pod takes part in another migration");
  t = {};
  t.migration = name;
  t.phase = TransferPhase::kReceiving;
  return ok(Effect::kLoads);
}

Answer discard(Pod& pod, const json& fields) {
  auto& t = pod.status.transfer;
  if (t.migration != text_at(fields, "migration")) return ok();
  const bool copy = t.phase == TransferPhase::kRestored || t.phase == TransferPhase::kRestoring;
  if (copy && pod.computes()) return refused(ErrorCode::kConflict, "the copy has been continued here");
  t = {};
  pod.receives_from.clear();
  pod.transfer_at = -1;
  if (copy) {
    pod.process = Process::kNone;
    pod.status.phase = RankPhase::kWaiting;
  }
  return ok();
}

// Among other ranks a seat that its rank has left waits for another one.
Answer kill(Pod& pod) {
  auto& s = pod.status;
  if (pod.seats == 1 || s.transfer.phase != TransferPhase::kSent || pod.process != Process::kStopped)
    return ok(pod.process == Process::kEnded || pod.process == Process::kNone ? Effect::kNone : Effect::kEnds);
  clear_gate(pod);
  if (pod.leaves_files) return ok(Effect::kEnds);
  pod.process = Process::kNone;
  pod.target = true;  // as one that was made to be
  pod.gate_dropped = 0;
  wire::RankStatus fresh;  // its ring is
  fresh.version = s.version;
  fresh.rank = s.rank;
  fresh.seat = s.seat;
  fresh.pod = s.pod;
  fresh.init_connected = s.init_connected;
  fresh.prepared_epoch = s.prepared_epoch;
  fresh.wave = s.wave;
  fresh.instructions_measured = s.instructions_measured;
  fresh.cpu = s.cpu;
  fresh.cpu_features = s.cpu_features;
  fresh.runtime = s.runtime;
  fresh.phase = RankPhase::kWaiting;
  s = std::move(fresh);
  return ok();
}

}  // namespace

void clear_gate(Pod& pod) {
  pod.gate = Gate::kNone;
  pod.status.gate_superstep = 0;
  pod.status.gate_committed = false;
  pod.order = nullptr;
  pod.save_order = nullptr;
}

bool start_save(Pod& pod, const json& save) {
  const auto set = count_at<std::uint64_t>(save, "set");
  auto& s = pod.status.save;
  if (s && s->set == set) return false;
  const bool busy = s && (s->phase == wire::SavePhase::kDumping || s->phase == wire::SavePhase::kDumped);
  pod.save_base = count_at<std::uint64_t>(save, "base");
  if (busy) pod.known_base = 0;  // with the thread that is given up
  s = wire::SaveStatus{.set = set, .phase = wire::SavePhase::kDumping};
  if (!busy) return true;
  s->phase = wire::SavePhase::kFailed;
  s->error = "the checkpoint storage has not taken the image of the set before yet";
  return false;
}

void start_dump(Pod& pod, const json& send) {
  auto& t = pod.status.transfer;
  t = {};
  t.migration = text_at(send, "migration");
  t.phase = TransferPhase::kDumping;
}

namespace {
std::optional<wire::Token> token_in(const json& fields) {
  const json& token = part_at(fields, wire::kToken);
  return token.is_null() ? std::nullopt : std::optional(reflect::read<wire::Token>(token, "token").value());
}
}  // namespace

Answer answer(Pod& pod, std::string_view verb, const json& fields, const std::shared_ptr<const wire::EpochPlan>& plan) {
  const auto superstep = count_at<std::uint64_t>(fields, "superstep");
  ++pod.status.version;
  if (verb == wire::kStatus) return ok(Effect::kNone, json(pod.status));
  if (const auto token = token_in(fields); token && pod.heeds_tokens) {
    const bool sets_gate = verb == wire::kArmGate || verb == wire::kCommitGate;
    const bool is_of_gate = sets_gate || verb == wire::kCancelGate;
    if (is_of_gate ? *token < pod.followed
                   : std::pair(token->wave, token->epoch) < std::pair(pod.followed.wave, pod.followed.epoch))
      return refused(ErrorCode::kConflict, "a later one has been followed");
    if (sets_gate && pod.gate_over && *token <= *pod.gate_over)
      return refused(ErrorCode::kConflict, "its gate is over");
    pod.followed = std::max(pod.followed, *token);
    pod.status.wave = token->wave;
    if (verb == wire::kCancelGate) pod.gate_over = std::max(pod.gate_over.value_or(*token), *token);
  }
  if (verb == wire::kPrepareEpoch) return prepare_epoch(pod, fields, plan);
  if (verb == wire::kOpenEpoch) return open_epoch(pod, fields);
  if (verb == wire::kArmGate) return arm_gate(pod, superstep);
  if (verb == wire::kCommitGate) return commit_gate(pod, superstep, fields);
  if (verb == wire::kCancelGate) return cancel_gate(pod, superstep);
  if (verb == wire::kReceive) return receive(pod, fields);
  if (verb == wire::kSend) return send(pod, fields);
  if (verb == wire::kRestore) return restore(pod, fields);
  if (verb == wire::kDiscard) return discard(pod, fields);
  if (verb == wire::kSave) return save(pod, fields);
  if (verb == wire::kLoad) return load(pod, fields);
  if (verb == wire::kKeepSets) return ok();
  if (verb == wire::kKill) return kill(pod);
  return refused(ErrorCode::kInvalid, std::format("there is no verb \"{}\"", verb));
}

}  // namespace bsp::simulated
