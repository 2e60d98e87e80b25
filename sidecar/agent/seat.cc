#include "sidecar/agent/seat.h"

#include <nlohmann/json.hpp>

#include "base/core/log.h"
#include "base/core/realtime.h"
#include "base/json/fields.h"
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

Result<std::unique_ptr<Seat>> Seat::open(Pod pod, std::uint32_t number) {
  const Config& config = pod.config;
  // The program's user is not known yet, and bsp-init has no capability that would let it write into a directory of another user.
  if (config.seats.size() > 1) BSP_CHECK_OK(make_directory(config.seat_dir(number), 01777));
  // criu runs under the program's uid and connects to the capture socket in there.
  BSP_CHECK_OK(make_directory(config.seat_path(number, "images"), 01777));
  BSP_TRY(collect::RingFile ring, collect::RingFile::open(config.seat_path(number, "ring")));
  return std::unique_ptr<Seat>(new Seat(std::move(pod), number, std::move(ring)));
}

Seat::Seat(Pod pod, std::uint32_t number, collect::RingFile ring)
    : pod_(std::move(pod)),
      number_(number),
      rank_(pod_.config.seats[number]),
      ring_(std::move(ring)),
      transfers_(pod_.loop, pod_.context, pod_.config.seat_path(number, "images"),
                 {.send_to_init = [this](const control::ToInit& m) { return control_->send(m); },
                  .changed =
                      [this] {
                        (void)pod_.save();
                        refresh();
                      },
                  .other_dump = [this] { return saves_.is_dumping(); }}),
      saves_(pod_.loop, pod_.config.seat_path(number, "images"), pod_.config.path("sidecar"),
             {.send_to_init = [this](const control::ToInit& m) { return control_->send(m); },
              .changed = [this] { refresh(); }}) {
  // Increases across restarts too, so that a watcher of the previous sidecar sees a change.
  status_.version = realtime_ns() / 1'000'000;
}

Seat::~Seat() { pod_.loop.cancel(poll_); }

Result<void> Seat::listen() {
  BSP_TRY(control_, ControlServer::listen(pod_.loop, pod_.config.seat_path(number_, "control"),
                                          {.message = [this](const control::FromInit& m) { on_init_message(m); },
                                           .lost = [this] { on_init_lost(); }}));
  return {};
}

wire::RankReport Seat::make_report(std::uint64_t since, std::uint64_t every) const {
  return collect::make_report(*ring_, rank_, since, every);
}

void Seat::aborted(int status, const std::string& message) {
  log_warning("the program called MPI_Abort", {{"rank", rank_}, {"status", status}, {"message", message}});
  abort_message_ = message.empty() ? std::format("MPI_Abort with {}", status) : message;
}

void Seat::operator_spoke() {
  if (end_.stays != 0) dismiss_init();
}

// --- bsp-init ----------------------------------------------------------------------------------------

void Seat::on_init_message(const control::FromInit& message) {
  const bool hello = std::holds_alternative<control::Hello>(message);
  if (hello) judge(std::get<control::Hello>(message));
  if (!program_.unfit.empty()) return refresh();  // what it says may mean something else
  program_.apply(message, realtime_ns());
  transfers_.on_init(message);
  saves_.on_init(message);
  if (program_.exited() && (hello || std::holds_alternative<control::Exited>(message))) {
    log_info("the program has ended",
             {{"code", program_.exit_code}, {"signal", program_.exit_signal}, {"message", program_.exit_message}});
    (void)pod_.save();  // before `bye`, after which bsp-init forgets it
    refresh();
    if (!end_.seen) end_.seen = std::chrono::steady_clock::now();
    dismiss_init();
    return;
  }
  if (hello) {
    send_fresh(pod_.fence().fresh());
    if (std::exchange(took_over_, false)) {
      if (!has_entered(*pod_.epochs.opened(number_)))
        if (auto renewed = pod_.epochs.renew(number_, *program_.uid, *program_.gid); !renewed)
          log_error("cannot renew the epoch's descriptor", {{"reason", renewed.error().message}});
      kill_if_opening_without_server();
    }
    start_if_due();
    continue_if_due();
  }
  if (std::holds_alternative<control::Stopped>(message)) send_if_ordered();
  // The message itself may have been lost with the previous sidecar.
  const bool has_left = hello && pod_.config.seats.size() > 1 && program_.state == control::ProgramState::kWaiting &&
                        transfers_.status().phase == wire::TransferPhase::kSent;
  // A second Vacate, sent before the first was answered, is answered too: by then another rank may be on its way here.
  const auto transfer = transfers_.status().phase;
  const bool is_free = transfer == wire::TransferPhase::kSent || transfer == wire::TransferPhase::kIdle;
  if (has_left || (is_free && std::holds_alternative<control::Vacated>(message))) become_free();
  refresh();
}

void Seat::judge(const control::Hello& hello) {
  if (control::is_understood(hello.protocol)) return program_.unfit.clear();
  program_.unfit = std::format(
      "bsp-init speaks version {} of its protocol and the sidecar version {}: give both one runtime image, or those of "
      "two releases in a row",
      hello.protocol, control::kProtocol);
  log_error("cannot work with bsp-init", {{"seat", number_}, {"reason", program_.unfit}});
}

void Seat::become_free() {
  log_info("the rank has left its seat", {{"rank", rank_}, {"seat", number_}});
  ring_.clear();
  abort_message_.clear();
  order_.reset();
  end_.seen.reset();
  pod_.epochs.vacate(number_);
  saves_.forget();
  transfers_.forget();  // saves
}

void Seat::dismiss_init() {
  pod_.loop.cancel(std::exchange(end_.stays, 0));
  const bool well = program_.exit_code == 0 && program_.exit_signal == 0;
  if (!well || !pod_.fence().must_stay(*end_.seen)) {
    (void)control_->send(control::Bye{});
    return;
  }
  (void)control_->send(control::Stay{});
  end_.stays = pod_.loop.after(kStayInterval, [this] { dismiss_init(); });
}

void Seat::end_program(const std::string& why) {
  log_error("ending the program", {{"reason", why}});
  if (auto sent = control_->send(control::Kill{.reason = why}); !sent)
    log_error("cannot send to bsp-init", {{"reason", sent.error().message}});
}

// PMIx clients don't reconnect, and Open MPI waits for ever for some answers of a server that is gone, as all other
// ranks then do for this one. A rank that no longer needs its server still finishes.
void Seat::kill_if_opening_without_server() {
  auto opens = [this] {
    return !program_.exited() && !program_.stopped() && BSP_RING_LOAD(ring_->state) == BSP_RANK_OPENING &&
           BSP_RING_LOAD(ring_->epoch) == pod_.epochs.opened(number_);
  };
  if (!opens()) return;
  pod_.loop.after(kOpenWithoutServerLimit, [this, opens, epoch = *pod_.epochs.opened(number_)] {
    if (opens() && pod_.epochs.opened(number_) == epoch)
      end_program(
          std::format("its sidecar ended while MPI opened epoch {}, which can't be finished without it", epoch));
  });
}

void Seat::on_init_lost() {
  log_warning("bsp-init has disconnected");
  program_.init_connected = false;
  transfers_.init_lost();
  saves_.init_lost();
  refresh();
}

void Seat::start_if_due() {
  if (!program_.awaits_start) return;
  for (const wire::EpochPlan& plan : pod_.epochs.plans())
    if (plan.cpu_level != 0) {
      // On failure, the next hello repeats it.
      if (control_->send(control::Start{.features = plan.cpu_level})) program_.awaits_start = false;
      return;
    }
}

void Seat::tell_parting() {
  static_assert(BSP_RING_SEATS == wire::kMostSeats);
  const Epochs::Parting bits = pod_.epochs.parting(number_);
  for (std::size_t i = 0; i < bits.size(); ++i) BSP_RING_STORE(ring_->parting[i], bits[i]);
}

// Continues the program if it is stopped and has not entered the open epoch yet. Safe to repeat: a rank that waits
// for epoch n differs from one that has left it by the epoch it last opened, which the shim writes when it opens one.
// In a new pod's ring that is 0 until then, as it should be.
void Seat::continue_if_due() {
  auto opened = pod_.epochs.opened(number_);
  if (!opened || !program_.stopped_at_gate(*ring_)) return;
  if (has_entered(*opened)) return;
  // A next sidecar would take the epoch before this one for the open one, in which this pod may have had another rank.
  if (!pod_.is_saved() && !pod_.save()) return;
  // The epoch was opened long ago, and bsp-init connects only now: the rank may run elsewhere by now.
  if (pod_.fence().cut_off()) return;
  send_fresh(
      pod_.fence().fresh());  // first, because bsp-init may have heard nothing for as long as the program was stopped
  auto sent = control_->send(control::Continue{.epoch = *opened});
  if (sent) program_.continuing = *opened;
  // On failure, the next hello repeats it.
}

void Seat::send_fresh(net::SteadyTime fresh) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(fresh.time_since_epoch()).count();
  // On failure, the next hello repeats it.
  (void)control_->send(control::Fresh{.ns = static_cast<std::uint64_t>(ns)});
}

void Seat::send_if_ordered() {
  if (!order_ || !program_.stopped_at_gate(*ring_)) return;
  const Order order = *std::exchange(order_, std::nullopt);
  std::uint64_t gate = BSP_RING_LOAD_SEQ(ring_->gate);
  if (bsp_gate_state_of(gate) != BSP_GATE_COMMITTED || bsp_gate_superstep(gate) != order.superstep) return;
  if (order.save) {
    if (auto begun = begin_save(*order.save); !begun)
      log_warning("cannot start the ordered checkpoint", {{"reason", begun.error().message}});
    return;
  }
  if (transfers_.status().migration == order.migration) return;  // tried already
  // On failure the operator will ask with `send`, and get the error.
  if (auto sent = transfers_.send(order.migration, order.target); !sent)
    log_warning("cannot start the ordered transfer", {{"reason", sent.error().message}});
}

bool Seat::has_entered(std::uint64_t epoch) const {
  bool never_opened_here = BSP_RING_LOAD(ring_->opened_ns) == 0;
  return !never_opened_here && BSP_RING_LOAD(ring_->epoch) >= epoch;
}

bool Seat::continued() const {
  return BSP_RING_LOAD(ring_->state) != BSP_RANK_STARTING || program_.continuing.has_value();
}

// --- Status ------------------------------------------------------------------------------------------

wire::RankStatus Seat::current_status() const {
  wire::RankStatus s;
  s.version = status_.version;
  s.rank = rank_;
  s.seat = number_;
  s.pod = pod_.config.pod;
  s.phase = phase_of(program_, *ring_);
  s.init_connected = program_.init_connected;
  s.epoch = BSP_RING_LOAD(ring_->epoch);
  s.prepared_epoch = pod_.epochs.highest_prepared();
  s.admitted_epoch = pod_.epochs.opened(number_).value_or(0);
  s.wave = pod_.epochs.followed().highest().wave;
  s.completed = collect::completed(*ring_);
  std::uint64_t gate = BSP_RING_LOAD_SEQ(ring_->gate);
  if (bsp_gate_state_of(gate) != BSP_GATE_NONE) s.gate_superstep = bsp_gate_superstep(gate);
  s.gate_committed = bsp_gate_state_of(gate) == BSP_GATE_COMMITTED || bsp_gate_state_of(gate) == BSP_GATE_DROPPING;
  s.blocked_reason = !program_.unfit.empty() ? program_.unfit
                     : ring_.intact()        ? collect::blocked_reason(*ring_)
                                             : std::string(kRingDamaged);
  s.blocked_for_good =
      !s.blocked_reason.empty() && program_.unfit.empty() && BSP_RING_LOAD(ring_->blocked_for_good) != 0;
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
  s.cpu = pod_.benchmark();
  s.cpu_features = pod_.config.cpu_features.bits();
  s.program_features = program_.features;
  s.runtime = pod_.config.runtime;
  s.transfer = transfers_.status();
  s.save = saves_.status();
  return s;
}

void Seat::refresh() {
  if (const auto rank = pod_.epochs.rank_at(number_)) rank_ = *rank;
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
      pod_.loop.cancel(watcher.timer);
      watcher.reply.ok(status_);
    }
  schedule_poll();
}

void Seat::schedule_poll() {
  // Once the program has stopped, its state changes only by bsp-init's messages.
  bool gated =
      status_.gate_superstep != 0 && status_.phase != RankPhase::kStopped && status_.phase != RankPhase::kExited;
  bool close = gated || status_.phase == RankPhase::kOpening || status_.phase == RankPhase::kClosing ||
               status_.phase == RankPhase::kAtGate;
  pod_.loop.cancel(poll_);
  poll_ = pod_.loop.after(close ? kClosePoll : kIdlePoll, [this] { refresh(); });
}

// --- Saved state ----------------------------------------------------------------------------------------

json Seat::saved() const {
  json state{{"transfer", transfers_.saved()}};
  if (auto opened = pod_.epochs.opened(number_)) state["opened"] = *opened;
  if (program_.exited())
    state["exited"] = {
        {"code", program_.exit_code}, {"signal", program_.exit_signal}, {"message", program_.exit_message}};
  return state;
}

void Seat::adopt(const json& saved) {
  if (const json& exited = part_at(saved, "exited"); exited.is_object()) {
    program_.exited_with(whole_number<int>(part_at(exited, "code")).value_or(-1),
                         whole_number<int>(part_at(exited, "signal")).value_or(0), text_at(exited, "message"));
  }
  transfers_.adopt(part_at(saved, "transfer"));
}

}  // namespace bsp::sidecar
