#include "sidecar/agent/sidecar.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/core/log.h"
#include "base/core/own_file.h"
#include "base/json/fields.h"
#include "crds/names.h"
#include "crds/reflect.h"
#include "sidecar/agent/files.h"

namespace bsp::sidecar {

using nlohmann::json;

Result<std::unique_ptr<Sidecar>> Sidecar::start(net::Loop& loop, Config config) {
  BSP_TRY(net::Credentials credentials, net::load_credentials(config.tls_dir));
  BSP_TRY(net::TlsContext context, net::TlsContext::create(credentials));
  BSP_CHECK_OK(make_directory(config.run_dir, 0755));
  // Created before any program runs, for files that no other user may read, forge or replace.
  BSP_CHECK_OK(make_directory(config.path("sidecar"), 0700));
  std::unique_ptr<Sidecar> sidecar(new Sidecar(loop, std::move(context), std::move(config)));
  BSP_CHECK_OK(sidecar->open_seats());
  BSP_CHECK_OK(sidecar->begin());
  sidecar->credentials_ = std::make_unique<net::CredentialsWatch>(loop, sidecar->context_, sidecar->config_.tls_dir,
                                                                  std::move(credentials));
  return sidecar;
}

Sidecar::Sidecar(net::Loop& loop, net::TlsContext context, Config config)
    : loop_(loop),
      context_(context),
      config_(std::move(config)),
      storage_(storage::open_storage(config_.storage)),
      epochs_(loop, context, config_) {}

Sidecar::~Sidecar() = default;

Result<void> Sidecar::open_seats() {
  for (std::uint32_t number = 0; number < config_.seats.size(); ++number) {
    BSP_TRY(auto seat, Seat::open({.loop = loop_,
                                   .context = context_,
                                   .config = config_,
                                   .storage = storage_,
                                   .epochs = epochs_,
                                   .fence = [this]() -> Fence& { return *fence_; },
                                   .save = [this] { return save(); },
                                   .is_saved = [this] { return saving_ != Saving::kFailed; },
                                   .stop_benchmark =
                                       [this] {
                                         if (benchmark_) benchmark_->stop();
                                       },
                                   .benchmark = [this] { return take_benchmark(); }},
                                  number));
    seats_.push_back(std::move(seat));
  }
  return {};
}

Result<void> Sidecar::begin() {
  BSP_CHECK_OK(epochs_.start([this](std::uint32_t seat, int status, const std::string& message) {
    seats_.at(seat)->aborted(status, message);
  }));
  for (const auto& seat : seats_) BSP_CHECK_OK(seat->listen());
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
  for (const auto& seat : seats_)
    log_info("sidecar ready", {{"rank", seat->rank()},
                               {"pod", config_.pod},
                               {"port", server_->port()},
                               {"ring", seat->ring_adopted() ? "adopted" : "new"}});
  return {};
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
      loop_, config_.pod, config_.fence_limit,
      Fence::Hooks{
          .plan = [this] { return epochs_.open_plan(); },
          // A program stopped at a gate continues only when this sidecar says so.
          .computes = [this] { return std::ranges::any_of(seats_, [](const auto& s) { return s->computes(); }); },
          .ask =
              [this](const wire::Member& member, net::LinkPeer::Done done) {
                // Rank 0's pod asks on behalf of all that ask it.
                const bool computes = !std::ranges::all_of(seats_, [](const auto& s) { return s->exited(); }) ||
                                      (has_rank_zero(epochs_.open_plan(), config_.pod) && fence_->needed_by_others());
                epochs_.peer(member.pod, member.address)
                    .call(fencing::kAlive, {{fencing::kComputes, computes}}, {}, kAliveTimeout, std::move(done));
              },
          .end_program =
              [this](const std::string& why) {
                for (const auto& seat : seats_)
                  if (seat->computes()) seat->end_program(why);
              },
          .save =
              [this](net::SteadyTime fresh) {
                if (auto saved = replace_own_file(config_.own_path("fresh"),
                                                  std::to_string(fresh.time_since_epoch().count()), 0600);
                    !saved)
                  log_error("cannot save when the pod was last known not to be cut off",
                            {{"reason", saved.error().message}});
                for (const auto& seat : seats_) seat->send_fresh(fresh);
              }},
      saved_fresh());
}

void Sidecar::begin_benchmark() {
  const bool exited = std::ranges::any_of(seats_, [](const auto& seat) { return seat->exited(); });
  if (!cpu_ && !epochs_.opened() && !exited) benchmark_ = std::make_unique<BenchmarkThread>();
}

std::optional<wire::CpuBenchmark> Sidecar::take_benchmark() {
  if (!benchmark_) return cpu_;
  cpu_ = benchmark_->result();
  if (!cpu_) return cpu_;
  benchmark_.reset();
  (void)save();
  return cpu_;
}

void Sidecar::refresh() {
  for (const auto& seat : seats_) seat->refresh();
}

// --- Saved state ----------------------------------------------------------------------------------------

Result<void> Sidecar::save() {
  if (saving_ == Saving::kLater) return {};
  json plans = json::array(), seats = json::array();
  for (const wire::EpochPlan& plan : epochs_.plans()) plans.push_back(plan);
  for (const auto& seat : seats_) seats.push_back(seat->saved());
  json state{{"plans", std::move(plans)}, {"seats", std::move(seats)}};
  if (const auto opened = epochs_.opened()) state["opened"] = *opened;
  if (cpu_) state["cpu"] = reflect::write(*cpu_);
  // A message about the program's end need not be UTF-8.
  const std::string text = state.dump(-1, ' ', false, json::error_handler_t::replace);
  const auto written = replace_own_file(config_.own_path("state"), text, 0600);
  saving_ = written ? Saving::kDone : Saving::kFailed;
  if (written) return {};
  log_error("cannot save the state", {{"reason", written.error().message}});
  return fail(ErrorCode::kUnavailable, "the sidecar can't save its state: " + written.error().message, true);
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
  if (const json& list = part_at(*state, "plans"); list.is_array())
    for (const json& item : list)
      if (auto plan = wire::epoch_plan_from_json(item)) plans.push_back(std::move(*plan));
  const json& saved = part_at(*state, "seats");
  const auto of_seat = [&](std::size_t seat) -> const json& {
    static const json kNothing;
    return saved.is_array() && seat < saved.size() ? saved[seat] : kNothing;
  };
  std::vector<std::optional<std::uint64_t>> opened;
  for (std::size_t seat = 0; seat < seats_.size(); ++seat)
    opened.push_back(whole_number<std::uint64_t>(part_at(of_seat(seat), "opened")));
  epochs_.adopt(std::move(plans), std::move(opened), whole_number<std::uint64_t>(part_at(*state, "opened")));
  if (const auto cpu = reflect::read<wire::CpuBenchmark>(part_at(*state, "cpu"), "state.cpu")) cpu_ = *cpu;
  saving_ = Saving::kLater;  // a seat that has lost its transfer saves, when the next one is not adopted yet
  for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
    seats_[seat]->take_over();
    seats_[seat]->adopt(of_seat(seat));
  }
  saving_ = Saving::kDone;
  (void)save();
  log_info("adopted the state of the previous sidecar", {{"epochs", epochs_.plans().size()}});
  return {};
}

}  // namespace bsp::sidecar
