#include "tests/swarm/sidecar.h"

#include <algorithm>

#include "base/json/fields.h"
#include "sidecar/ring/ring_access.h"

namespace bsp::simulation {

using nlohmann::json;
using simulated::Answer;
using simulated::Effect;
using simulated::Process;

namespace {

// Programs don't ask for anything: the cluster opens an epoch when all of its ranks are there.
class NoPmix final : public pmix::Namespaces {
 public:
  Result<void> register_namespace(const std::string&, const pmix::Placement&, std::uint32_t) override { return {}; }
  Result<std::vector<std::string>> register_client(const std::string&, std::uint32_t, uid_t, gid_t) override {
    return std::vector<std::string>{};
  }
  void forget(const std::string&, const std::vector<std::uint32_t>&) override {}
  void published(const std::string&, std::uint32_t, FetchDone done) override {
    done(fail(ErrorCode::kNotFound, "there is none"));
  }
};

Answer ok(Effect effect = Effect::kNone, json fields = json::object()) { return {std::move(fields), effect}; }
Answer refused(Error error) { return {std::unexpected(std::move(error)), Effect::kNone}; }

}  // namespace

Sidecar::Sidecar(net::Transport& network, sidecar::Config config, std::vector<std::unique_ptr<bsp_ring>>& rings,
                 Saved& saved, Hooks hooks)
    : config_(std::move(config)), rings_(rings), saved_(saved), epochs_(loop_, net::TlsContext(), config_) {
  loop_.set_transport(&network);
  epochs_.start_with(std::make_unique<NoPmix>());
  if (saved.any) epochs_.adopt(saved.plans, saved.opened, saved.latest);
  fence_ = std::make_unique<sidecar::Fence>(
      loop_, config_.pod, config_.fence_limit,
      sidecar::Fence::Hooks{
          .plan = [this] { return epochs_.open_plan(); },
          .computes = hooks.computes,
          .ask =
              [this, computes = hooks.computes](const wire::Member& member, net::LinkPeer::Done done) {
                const bool needed = computes() || fence_->needed_by_others();
                epochs_.peer(member.pod, member.address)
                    .call(fencing::kAlive, {{fencing::kComputes, needed}}, {}, sidecar::kAliveTimeout, std::move(done));
              },
          .end_program = hooks.end_program,
          .save =
              [this, tell = hooks.tell_init](net::SteadyTime fresh) {
                if (!disk_full) saved_.fresh = fresh;
                tell(fresh);
              }},
      saved.fresh);
}

Result<void> Sidecar::save() {
  is_saved_ = !disk_full;
  if (disk_full) return fail(ErrorCode::kNoSpace, "no space is left for the sidecar's state", true);
  saved_.any = true;
  saved_.plans = epochs_.plans();
  saved_.opened.clear();
  for (std::uint32_t seat = 0; seat < config_.seats.size(); ++seat) saved_.opened.push_back(epochs_.opened(seat));
  saved_.latest = epochs_.opened();
  return {};
}

void Sidecar::show(simulated::Pod& seat) {
  bsp_ring& ring = *rings_[seat.local];
  if (const auto rank = epochs_.rank_at(seat.local)) seat.rank = seat.status.rank = *rank;
  seat.status.prepared_epoch = epochs_.highest_prepared();
  seat.status.admitted_epoch = epochs_.opened(seat.local).value_or(0);
  seat.status.wave = epochs_.followed().highest().wave;
  const std::uint64_t word = BSP_RING_LOAD_SEQ(ring.gate);
  const auto state = bsp_gate_state_of(word);
  seat.gate = static_cast<simulated::Gate>(state);
  seat.status.gate_superstep = state == BSP_GATE_NONE ? 0 : bsp_gate_superstep(word);
  seat.status.gate_committed = state == BSP_GATE_COMMITTED || state == BSP_GATE_DROPPING;
}

void Sidecar::run_due(std::vector<simulated::Pod>& seats) {
  for (simulated::Pod& seat : seats) {
    bsp_ring& ring = *rings_[seat.local];
    BSP_RING_STORE_SEQ(ring.completed, seat.status.completed);
    BSP_RING_STORE_SEQ(ring.gate_dropped, seat.gate_dropped);
    sidecar::settle_gate(ring);
    show(seat);
  }
  loop_.run_due();
}

json Sidecar::alive(const json& fields) {
  if (flag_at(fields, fencing::kComputes, false)) fence_->asked();
  return {{fencing::kAge, static_cast<std::uint64_t>(fence_->age().count())}};
}

Result<Answer> Sidecar::open(simulated::Pod& seat, const json& fields) {
  if (!seat.status.init_connected)
    return fail(ErrorCode::kUnavailable, "bsp-init has not connected yet, so the program's user is unknown", true);
  const auto epoch = count_at<std::uint64_t>(fields, "epoch");
  BSP_TRY(const bool fresh, epochs_.open(epoch, seat.local, 1000, 1000));
  if (fresh) {
    sidecar::clear_gate(*rings_[seat.local]);
    simulated::clear_gate(seat);
    epochs_.followed().end_gate(fields);
  }
  if (fresh || !is_saved_) BSP_CHECK_OK(save());
  const bool stopped = seat.process == Process::kStopped || seat.process == Process::kRestored;
  const bool due = seat.process == Process::kStarting || (stopped && seat.status.epoch < epoch && !fence_->cut_off());
  return ok(due ? Effect::kContinues : Effect::kNone);
}

Result<Answer> Sidecar::set_gate(simulated::Pod& seat, std::string_view verb, const json& fields) {
  bsp_ring& ring = *rings_[seat.local];
  const auto superstep = count_at<std::uint64_t>(fields, "superstep");
  if (verb == wire::kCancelGate) {
    sidecar::cancel_gate(ring, superstep);
    epochs_.followed().end_gate(fields);
    return ok();
  }
  if (verb == wire::kArmGate) {
    if (seat.process == Process::kEnded) return fail(ErrorCode::kRefused, "the program has ended");
    BSP_TRY(const sidecar::Armed armed, sidecar::arm_gate(ring, superstep));
    return ok(Effect::kNone, {{"completed", armed.completed}, {"late", armed.late}});
  }
  BSP_CHECK_OK(sidecar::commit_gate(ring, superstep));
  seat.order = seat.forgetful ? json() : part_at(fields, "send");
  seat.save_order = seat.forgetful ? json() : part_at(fields, "save");
  return ok();
}

Answer Sidecar::answer(simulated::Pod& seat, std::string_view verb, const json& fields,
                       const std::shared_ptr<const wire::EpochPlan>& plan) {
  const auto answered = [&]() -> Result<Answer> {
    ++seat.status.version;
    if (verb == wire::kStatus) {
      show(seat);
      return ok(Effect::kNone, json(seat.status));
    }
    if (heeds_tokens) BSP_CHECK_OK(epochs_.followed().follow(verb, fields));
    if (verb == wire::kPrepareEpoch) {
      if (!plan) return fail(ErrorCode::kInvalid, "the plan can't be read");
      BSP_CHECK_OK(epochs_.prepare(*plan));
      BSP_CHECK_OK(save());
      return ok();
    }
    if (verb == wire::kOpenEpoch) return open(seat, fields);
    if (verb == wire::kArmGate || verb == wire::kCommitGate || verb == wire::kCancelGate)
      return set_gate(seat, verb, fields);
    const Process before = seat.process;
    Answer other = simulated::answer(seat, verb, fields);
    if (verb == wire::kKill && before == Process::kStopped && seat.process == Process::kNone) {  // it has left
      *rings_[seat.local] = {};
      epochs_.vacate(seat.local);
      (void)save();
    }
    return other;
  }();
  show(seat);
  return answered ? *answered : refused(answered.error());
}

}  // namespace bsp::simulation
