#include "sidecar/agent/sidecar.h"

#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/core/log.h"
#include "base/core/own_file.h"
#include "base/core/realtime.h"
#include "base/json/fields.h"
#include "crds/names.h"
#include "crds/reflect.h"
#include "sidecar/agent/files.h"
#include "sidecar/agent/gate.h"
#include "sidecar/ring/ring_access.h"

namespace bsp::sidecar {

using nlohmann::json;
using wire::RankPhase;

namespace {

// Poll intervals of the ring: short while the job pauses for the operator.
constexpr std::chrono::milliseconds kClosePoll{1};
constexpr std::chrono::milliseconds kIdlePoll{50};
constexpr const char* kRingDamaged =
    "the program has damaged the ring that it shares with its sidecar: the rank is no longer measured or moved";
constexpr std::chrono::seconds kStayInterval{1};  // bsp-init waits 5 s
constexpr std::chrono::seconds kOpenWithoutServerLimit{3};

}  // namespace

Result<std::unique_ptr<Sidecar>> Sidecar::start(net::Loop& loop, Config config) {
  BSP_TRY(net::Credentials credentials, net::load_credentials(config.tls_dir));
  BSP_TRY(net::TlsContext context, net::TlsContext::create(credentials));
  BSP_CHECK_OK(make_directory(config.run_dir, 0755));
  // Created before any program runs, for files that no other user may read, forge or replace.
  BSP_CHECK_OK(make_directory(config.path("sidecar"), 0700));
  // criu runs under the program's uid and connects to the capture socket in there.
  BSP_CHECK_OK(make_directory(config.path("images"), 01777));
  BSP_TRY(collect::RingFile ring, collect::RingFile::open(config.path("ring")));
  std::unique_ptr<Sidecar> sidecar(new Sidecar(loop, std::move(context), std::move(config), std::move(ring)));
  BSP_CHECK_OK(sidecar->begin());
  sidecar->credentials_ = std::make_unique<net::CredentialsWatch>(loop, sidecar->context_, sidecar->config_.tls_dir,
                                                                  std::move(credentials));
  return sidecar;
}

Sidecar::Sidecar(net::Loop& loop, net::TlsContext context, Config config, collect::RingFile ring)
    : loop_(loop),
      context_(context),
      config_(std::move(config)),
      ring_(std::move(ring)),
      epochs_(loop, context, config_),
      transfers_(loop, context, config_.path("images"),
                 {.send_to_init = [this](const control::ToInit& m) { return control_->send(m); },
                  .changed =
                      [this] {
                        save();
                        refresh();
                      }}) {
  // Increases across restarts too, so that a watcher of the previous sidecar sees a change.
  status_.version = realtime_ns() / 1'000'000;
}

Sidecar::~Sidecar() = default;

Result<void> Sidecar::begin() {
  BSP_CHECK_OK(epochs_.start([this](int status, const std::string& message) {
    log_warning("the program called MPI_Abort", {{"status", status}, {"message", message}});
    abort_message_ = message.empty() ? std::format("MPI_Abort with {}", status) : message;
  }));
  BSP_TRY(control_, ControlServer::listen(loop_, config_.path("control"),
                                          {.message = [this](const control::FromInit& m) { on_init_message(m); },
                                           .lost = [this] { on_init_lost(); }}));
  BSP_CHECK_OK(adopt());
  begin_benchmark();
  fence_ = make_fence();
  BSP_TRY(server_, net::LinkServer::listen(
                       loop_, context_, config_.listen,
                       [this](net::Request request, net::Reply reply) { handle(std::move(request), std::move(reply)); },
                       [](const std::string& peer) { return wire::request_limits(peer == names::kOperatorIdentity); }));
  if (!config_.liveness.empty()) {
    BSP_TRY(liveness_, Liveness::listen(loop_, config_.liveness));
  }
  refresh();
  log_info("sidecar ready", {{"rank", config_.rank},
                             {"pod", config_.pod},
                             {"port", server_->port()},
                             {"ring", ring_.adopted() ? "adopted" : "new"}});
  return {};
}

// --- bsp-init ----------------------------------------------------------------------------------------

void Sidecar::on_init_message(const control::FromInit& message) {
  const bool hello = std::holds_alternative<control::Hello>(message);
  program_.apply(message, realtime_ns());
  transfers_.on_init(message);
  if (program_.exited() && (hello || std::holds_alternative<control::Exited>(message))) {
    log_info("the program has ended",
             {{"code", program_.exit_code}, {"signal", program_.exit_signal}, {"message", program_.exit_message}});
    save();  // before `bye`, after which bsp-init forgets it
    refresh();
    if (!ended_) ended_ = std::chrono::steady_clock::now();
    dismiss_init();
    return;
  }
  if (hello) {
    send_fresh(fence_->fresh());
    if (std::exchange(took_over_, false)) {
      if (!has_entered(*epochs_.opened()))
        if (auto renewed = epochs_.renew(*program_.uid, *program_.gid); !renewed)
          log_error("cannot renew the epoch's descriptor", {{"reason", renewed.error().message}});
      kill_if_opening_without_server();
    }
    continue_if_due();
  }
  if (std::holds_alternative<control::Stopped>(message)) send_if_ordered();
  refresh();
}

void Sidecar::dismiss_init() {
  loop_.cancel(std::exchange(bye_, 0));
  const bool well = program_.exit_code == 0 && program_.exit_signal == 0;
  if (!well || !fence_->must_stay(*ended_)) {
    (void)control_->send(control::Bye{});
    return;
  }
  (void)control_->send(control::Stay{});
  bye_ = loop_.after(kStayInterval, [this] { dismiss_init(); });
}

void Sidecar::end_program(const std::string& why) {
  log_error("ending the program", {{"reason", why}});
  if (auto sent = control_->send(control::Kill{.reason = why}); !sent)
    log_error("cannot send to bsp-init", {{"reason", sent.error().message}});
}

// PMIx clients don't reconnect, and Open MPI waits for ever for some answers of a server that is gone, as all other
// ranks then do for this one. A rank that no longer needs its server still finishes.
void Sidecar::kill_if_opening_without_server() {
  auto opens = [this] {
    return !program_.exited() && !program_.stopped() && BSP_RING_LOAD(ring_->state) == BSP_RANK_OPENING &&
           BSP_RING_LOAD(ring_->epoch) == epochs_.opened();
  };
  if (!opens()) return;
  loop_.after(kOpenWithoutServerLimit, [this, opens, epoch = *epochs_.opened()] {
    if (opens() && epochs_.opened() == epoch)
      end_program(
          std::format("its sidecar ended while MPI opened epoch {}, which can't be finished without it", epoch));
  });
}

void Sidecar::on_init_lost() {
  log_warning("bsp-init has disconnected");
  program_.init_connected = false;
  transfers_.init_lost();
  refresh();
}

// Continues the program if it is stopped and has not entered the open epoch yet. Safe to repeat: a rank that waits
// for epoch n differs from one that has left it by the epoch it last opened, which the shim writes when it opens one.
// In a new pod's ring that is 0 until then, as it should be.
void Sidecar::continue_if_due() {
  auto opened = epochs_.opened();
  if (!opened || !program_.stopped_at_gate(*ring_)) return;
  if (has_entered(*opened)) return;
  // The epoch was opened long ago, and bsp-init connects only now: the rank may run elsewhere by now.
  if (fence_->cut_off()) return;
  send_fresh(fence_->fresh());  // first, because bsp-init may have heard nothing for as long as the program was stopped
  auto sent = control_->send(control::Continue{.epoch = *opened});
  if (sent) program_.continuing = *opened;
  // On failure, the next hello repeats it.
}

// The steady clock belongs to the machine, not to the process.
std::optional<net::SteadyTime> Sidecar::saved_fresh() const {
  const auto text = read_own_file(config_.own_path("fresh"), 64);
  if (!text) return std::nullopt;
  const auto ns = std::strtoll(text->c_str(), nullptr, 10);
  if (ns <= 0) return std::nullopt;
  return net::SteadyTime(net::SteadyTime::duration(ns));
}

std::unique_ptr<Fence> Sidecar::make_fence() {
  return std::make_unique<Fence>(
      loop_, config_.rank, config_.fence_limit,
      Fence::Hooks{.plan = [this] { return epochs_.open_plan(); },
                   // A program stopped at a gate continues only when this sidecar says so.
                   .computes = [this] { return !program_.exited() && !program_.stopped_at_gate(*ring_); },
                   .ask =
                       [this](const wire::Member& member, net::LinkPeer::Done done) {
                         // Rank 0 asks on behalf of all ranks that ask it.
                         const bool computes = !program_.exited() || (config_.rank == 0 && fence_->needed_by_others());
                         epochs_.peer(member.pod, member.address)
                             .call(fencing::kAlive, {{fencing::kComputes, computes}}, {}, kAliveTimeout,
                                   std::move(done));
                       },
                   .end_program = [this](const std::string& why) { end_program(why); },
                   .save =
                       [this](net::SteadyTime fresh) {
                         if (auto saved = replace_own_file(config_.own_path("fresh"),
                                                           std::to_string(fresh.time_since_epoch().count()), 0600);
                             !saved)
                           log_error("cannot save when the pod was last known not to be cut off",
                                     {{"reason", saved.error().message}});
                         send_fresh(fresh);
                       }},
      saved_fresh());
}

void Sidecar::send_fresh(net::SteadyTime fresh) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(fresh.time_since_epoch()).count();
  // On failure, the next hello repeats it.
  (void)control_->send(control::Fresh{.ns = static_cast<std::uint64_t>(ns)});
}

void Sidecar::send_if_ordered() {
  if (!order_ || !program_.stopped_at_gate(*ring_)) return;
  const Order order = *std::exchange(order_, std::nullopt);
  std::uint64_t gate = BSP_RING_LOAD_SEQ(ring_->gate);
  if (bsp_gate_state_of(gate) != BSP_GATE_COMMITTED || bsp_gate_superstep(gate) != order.superstep) return;
  if (transfers_.status().migration == order.migration) return;  // tried already
  // On failure the operator will ask with `send`, and get the error.
  if (auto sent = transfers_.send(order.migration, order.target); !sent)
    log_warning("cannot start the ordered transfer", {{"reason", sent.error().message}});
}

bool Sidecar::has_entered(std::uint64_t epoch) const {
  bool never_opened_here = BSP_RING_LOAD(ring_->opened_ns) == 0;
  return !never_opened_here && BSP_RING_LOAD(ring_->epoch) >= epoch;
}

bool Sidecar::continued() const {
  return BSP_RING_LOAD(ring_->state) != BSP_RANK_STARTING || program_.continuing.has_value();
}

// --- Status ------------------------------------------------------------------------------------------

wire::RankStatus Sidecar::current_status() const {
  wire::RankStatus s;
  s.version = status_.version;
  s.rank = config_.rank;
  s.pod = config_.pod;
  s.phase = phase_of(program_, *ring_);
  s.init_connected = program_.init_connected;
  s.epoch = BSP_RING_LOAD(ring_->epoch);
  s.prepared_epoch = epochs_.highest_prepared();
  s.admitted_epoch = epochs_.opened().value_or(0);
  s.completed = collect::completed(*ring_);
  std::uint64_t gate = BSP_RING_LOAD_SEQ(ring_->gate);
  if (bsp_gate_state_of(gate) != BSP_GATE_NONE) s.gate_superstep = bsp_gate_superstep(gate);
  s.gate_committed = bsp_gate_state_of(gate) == BSP_GATE_COMMITTED || bsp_gate_state_of(gate) == BSP_GATE_DROPPING;
  s.blocked_reason = ring_.intact() ? collect::blocked_reason(*ring_) : std::string(kRingDamaged);
  s.postponed = BSP_RING_LOAD(ring_->postponed);
  s.collective = collect::most_called(*ring_);
  s.exit_code = program_.exit_code;
  s.exit_signal = program_.exit_signal;
  s.exit_message = program_.exit_message;
  if (program_.exited() && !abort_message_.empty())
    s.exit_message += (s.exit_message.empty() ? "" : "; ") + abort_message_;
  s.mpi_initialized =
      BSP_RING_LOAD(ring_->state) != BSP_RANK_STARTING || transfers_.status().phase == wire::TransferPhase::kRestored;
  s.mpi_finalized = BSP_RING_LOAD(ring_->state) == BSP_RANK_FINALIZED;
  s.memory_bytes = BSP_RING_LOAD(ring_->memory_bytes);
  s.gate_reached_ns = BSP_RING_LOAD(ring_->gate_reached_ns);
  s.close_ns = BSP_RING_LOAD(ring_->close_ns);
  s.stopped_ns = program_.stopped_ns;
  s.opened_ns = BSP_RING_LOAD(ring_->opened_ns);
  s.open_ns = BSP_RING_LOAD(ring_->open_ns);
  s.open_cpu_ns = BSP_RING_LOAD(ring_->open_cpu_ns);
  s.first_compute_ns = BSP_RING_LOAD(ring_->first_compute_ns);
  s.instructions_measured = BSP_RING_LOAD(ring_->instruction_source) == BSP_INSTRUCTIONS_PERF;
  s.throttled = program_.throttle.share(realtime_ns());
  s.cpu = cpu_;
  s.transfer = transfers_.status();
  return s;
}

void Sidecar::begin_benchmark() {
  if (!cpu_ && !epochs_.opened() && !program_.exited()) benchmark_ = std::make_unique<BenchmarkThread>();
}

void Sidecar::take_benchmark() {
  if (!benchmark_) return;
  cpu_ = benchmark_->result();
  if (!cpu_) return;
  benchmark_.reset();
  save();
}

void Sidecar::refresh() {
  take_benchmark();
  if (!ring_.intact() && !std::exchange(ring_damage_logged_, true)) log_error(kRingDamaged);
  if (program_.continuing) {
    std::uint32_t state = BSP_RING_LOAD(ring_->state);
    if (BSP_RING_LOAD(ring_->epoch) >= *program_.continuing && state != BSP_RANK_STARTING && state != BSP_RANK_CLOSING)
      program_.continuing.reset();
  }
  settle_gate(*ring_);
  wire::RankStatus fresh = current_status();
  wire::RankStatus before = status_;
  before.completed = fresh.completed;
  before.memory_bytes = fresh.memory_bytes;
  before.throttled = fresh.throttled;
  bool changed = fresh != before;
  if (changed) ++fresh.version;
  status_ = std::move(fresh);
  if (changed)
    for (auto& [id, watcher] : std::exchange(watchers_, {})) {
      loop_.cancel(watcher.timer);
      watcher.reply.ok(status_);
    }
  schedule_poll();
}

void Sidecar::schedule_poll() {
  // Once the program has stopped, its state changes only by bsp-init's messages.
  bool gated =
      status_.gate_superstep != 0 && status_.phase != RankPhase::kStopped && status_.phase != RankPhase::kExited;
  bool close = gated || status_.phase == RankPhase::kOpening || status_.phase == RankPhase::kClosing ||
               status_.phase == RankPhase::kAtGate;
  loop_.cancel(poll_);
  poll_ = loop_.after(close ? kClosePoll : kIdlePoll, [this] { refresh(); });
}

// --- Saved state ----------------------------------------------------------------------------------------

void Sidecar::save() {
  json plans = json::array();
  for (const wire::EpochPlan& plan : epochs_.plans()) plans.push_back(plan);
  json state{{"plans", std::move(plans)}, {"transfer", transfers_.saved()}};
  if (auto opened = epochs_.opened()) state["opened"] = *opened;
  if (cpu_) state["cpu"] = reflect::write(*cpu_);
  if (program_.exited())
    state["exited"] = {
        {"code", program_.exit_code}, {"signal", program_.exit_signal}, {"message", program_.exit_message}};
  // A message about the program's end need not be UTF-8.
  const std::string text = state.dump(-1, ' ', false, json::error_handler_t::replace);
  if (auto written = replace_own_file(config_.own_path("state"), text, 0600); !written)
    log_error("cannot save the state", {{"reason", written.error().message}});
}

// Fails if the state can't be read at present: without it the sidecar would forget its epochs, and overwrite it.
Result<void> Sidecar::adopt() {
  const MessageLimits limits = wire::request_limits(true);  // most of it are the operator's plans
  auto text = read_own_file(config_.own_path("state"), limits.json.bytes);
  if (!text && text.error().code == ErrorCode::kNotFound) return {};
  const bool is_worthless =
      !text && (text.error().code == ErrorCode::kRefused || text.error().code == ErrorCode::kInvalid);
  if (!text && !is_worthless) return std::unexpected(text.error());
  auto state = text ? parse_bounded(*text, limits.json) : Result<json>(std::unexpected(text.error()));
  if (!state) {
    log_error("cannot read the state of the previous sidecar", {{"reason", state.error().message}});
    return {};
  }
  std::vector<wire::EpochPlan> plans;
  if (const json& saved = part_at(*state, "plans"); saved.is_array())
    for (const json& item : saved)
      if (auto plan = wire::epoch_plan_from_json(item)) plans.push_back(std::move(*plan));
  const auto opened = whole_number<std::uint64_t>(part_at(*state, "opened"));
  epochs_.adopt(std::move(plans), opened);
  took_over_ = opened.has_value();
  if (const json& exited = part_at(*state, "exited"); exited.is_object()) {
    program_.exited_with(whole_number<int>(part_at(exited, "code")).value_or(-1),
                         whole_number<int>(part_at(exited, "signal")).value_or(0), text_at(exited, "message"));
  }
  if (const auto cpu = reflect::read<wire::CpuBenchmark>(part_at(*state, "cpu"), "state.cpu")) cpu_ = *cpu;
  transfers_.adopt(part_at(*state, "transfer"));
  log_info("adopted the state of the previous sidecar", {{"epochs", epochs_.plans().size()}});
  return {};
}

}  // namespace bsp::sidecar
