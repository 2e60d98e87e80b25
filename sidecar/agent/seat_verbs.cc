// The verbs of crds/wire.h that concern one rank, by its seat.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/core/base64.h"
#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/json/fields.h"
#include "crds/names.h"
#include "crds/requests.h"
#include "sidecar/agent/collect/set_manager.h"
#include "sidecar/agent/gate.h"
#include "sidecar/agent/sidecar.h"

namespace bsp::sidecar {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds kMaxWatch{30};

}  // namespace

Result<json> nothing(Result<void> result) {
  if (!result) return std::unexpected(std::move(result).error());
  return json::object();
}

Result<json> Seat::status(const net::Request&) {
  refresh();
  return json(status_);
}

Result<json> Seat::arm_gate(const net::Request& request) {
  BSP_TRY(const auto gate, wire::read_request<wire::GateRequest>(request.fields));
  if (program_.exited()) return fail(ErrorCode::kRefused, "the program has ended");
  if (!ring_.intact()) return fail(ErrorCode::kRefused, "the program has damaged its ring");
  BSP_TRY(Armed armed, sidecar::arm_gate(*ring_, gate.superstep));
  return reflect::write(wire::ArmAnswer{armed.completed, armed.late});
}

Result<json> Seat::cancel_gate(const net::Request& request) {
  const auto gate = wire::read_request<wire::GateRequest>(request.fields);
  sidecar::cancel_gate(*ring_, gate ? gate->superstep : 0);
  pod_.epochs.followed().end_gate(request.fields);
  return json::object();
}

Result<json> Seat::receive(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::ReceiveRequest>(request.fields));
  if (!program_.unfit.empty()) return fail(ErrorCode::kRefused, program_.unfit);
  return nothing(transfers_.receive(asked.migration, asked.from_pod, asked.restore));
}

Result<json> Seat::restore(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::MigrationRequest>(request.fields));
  return nothing(transfers_.restore(asked.migration));
}

void Seat::discard(net::Request& request, net::Reply reply) {
  const auto asked = wire::read_request<wire::MigrationRequest>(request.fields);
  if (!asked) return reply.error(asked.error());
  transfers_.discard(asked->migration, continued(), std::move(reply));
}

Result<json> Seat::kill(const net::Request&) {
  if (program_.exited()) return json::object();
  // A seat outlasts a rank that has moved away from it.
  const bool has_moved = transfers_.status().phase == wire::TransferPhase::kSent && program_.stopped();
  if (has_moved && pod_.config.seats.size() > 1) return nothing(control_->send(control::Vacate{}));
  return nothing(control_->send(control::Kill{}));
}

void Seat::watch(net::Request& request, net::Reply reply) {
  const auto asked = wire::read_request<wire::WatchRequest>(request.fields);
  if (!asked) return reply.error(asked.error());
  refresh();
  if (status_.version != asked->version) return reply.ok(status_);
  auto wait = std::min<std::chrono::milliseconds>(
      std::chrono::milliseconds(std::min<std::uint64_t>(asked->wait_ms, 3'600'000)), kMaxWatch);
  std::uint64_t id = next_watcher_++;
  auto timer = pod_.loop.after(wait, [this, id] {
    auto node = watchers_.extract(id);
    if (!node.empty()) node.mapped().reply.ok(status_);
  });
  watchers_.emplace(id, Watcher{std::move(reply), timer});
}

Result<json> Seat::open_epoch(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::EpochRequest>(request.fields));
  if (!program_.unfit.empty()) return fail(ErrorCode::kRefused, program_.unfit);
  // PMIx rejects a client of another user than it was opened for, and Open MPI then waits for ever.
  if (!program_.uid && !pod_.config.without_init)
    return fail(ErrorCode::kUnavailable, "bsp-init has not connected yet, so the program's user is unknown", true);
  BSP_TRY(bool fresh,
          pod_.epochs.open(asked.epoch, number_, program_.uid.value_or(::getuid()), program_.gid.value_or(::getgid())));
  pod_.stop_benchmark();  // the program is about to compute
  if (fresh) {
    clear_gate(*ring_);  // it has served its purpose; left set, it would close the new epoch at once
    pod_.epochs.followed().end_gate(request.fields);
  }
  tell_parting();
  // Before the program continues, and again if it has failed before.
  if (fresh || !pod_.is_saved()) BSP_CHECK_OK(pod_.save());
  continue_if_due();
  fault_point("epoch.continued");
  return json::object();
}

Result<json> Seat::commit_gate(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::CommitRequest>(request.fields));
  std::optional<Order> order;
  if (const auto& send = asked.send)
    order = Order{asked.superstep, send->migration, {send->to_address, send->to_pod}, {}};
  else if (asked.save)
    order = Order{.superstep = asked.superstep, .migration = {}, .target = {}, .save = asked.save};
  BSP_CHECK_OK(sidecar::commit_gate(*ring_, asked.superstep));
  order_ = std::move(order);
  if (order_ && !order_->save) transfers_.connect_early(order_->target);
  send_if_ordered();
  return json::object();
}

Result<json> Seat::send_checkpoint(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::SendRequest>(request.fields));
  bool sending =
      transfers_.status().migration == asked.migration && (transfers_.status().phase == wire::TransferPhase::kDumping ||
                                                           transfers_.status().phase == wire::TransferPhase::kSent);
  if (!sending && !program_.stopped_at_gate(*ring_))
    return fail(ErrorCode::kConflict,
                std::format("the program is {}, not stopped at a gate", to_string(phase_of(program_, *ring_))));
  if (!program_.init_connected) return fail(ErrorCode::kUnavailable, "bsp-init is not connected", true);
  return nothing(transfers_.send(asked.migration, {asked.to_address, asked.to_pod}));
}

// Only from the pod that `receive` has announced.
void Seat::checkpoint(net::Request& request, net::Reply reply) {
  const auto asked = wire::read_request<wire::MigrationRequest>(request.fields);
  if (!asked) return reply.error(asked.error());
  pod_.stop_benchmark();  // all ranks wait for the checkpoint
  transfers_.checkpoint(request.peer, asked->migration, std::move(reply));
}

// --- Checkpoint sets -----------------------------------------------------------------------------------

Result<ImageKeys> Seat::image_of(const wire::SaveRequest& asked) const {
  const Config& config = pod_.config;
  if (!pod_.storage) return fail(ErrorCode::kRefused, "the job has no checkpoint storage (spec.checkpoint.storage)");
  // That of a set which another job has made may have been given to this pod instead of to the operator.
  const bool given = asked.key.empty() && !asked.job.empty();
  auto key = base64_decode(asked.key);
  if (!given && (!key || key->size() != storage::kKeyBytes))
    return fail(ErrorCode::kInvalid, std::format("request.key: must be {} bytes in base64", storage::kKeyBytes));
  return ImageKeys{.storage = pod_.storage,
                   .name = {.job_uid = asked.job.empty() ? config.job_uid : asked.job,
                            .set = asked.set,
                            .epoch = asked.epoch,
                            .attempt = asked.attempt,
                            .rank = rank_,
                            .ranks = config.ranks},
                   .key = given ? "" : std::move(*key),
                   .key_file = given ? config.set_key : "",
                   .base = asked.base};
}

Result<void> Seat::begin_save(const wire::SaveRequest& asked) {
  BSP_TRY(ImageKeys image, image_of(asked));
  return saves_.save(asked.set, std::move(image));
}

Result<json> Seat::save_image(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::SaveRequest>(request.fields));
  const bool begun = saves_.status() && saves_.status()->set == asked.set;
  if (!begun && !program_.stopped_at_gate(*ring_))
    return fail(ErrorCode::kConflict,
                std::format("the program is {}, not stopped at a gate", to_string(phase_of(program_, *ring_))));
  if (!begun && !program_.init_connected) return fail(ErrorCode::kUnavailable, "bsp-init is not connected", true);
  return nothing(begin_save(asked));
}

Result<json> Seat::load_image(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::LoadRequest>(request.fields));
  if (!program_.unfit.empty()) return fail(ErrorCode::kRefused, program_.unfit);
  BSP_TRY(const ImageKeys image, image_of(asked.image));
  pod_.stop_benchmark();  // all ranks wait for it
  return nothing(transfers_.load(wire::set_name(asked.image.set), image, asked.digest, asked.ignore_files));
}

Result<json> Seat::keep_sets(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::KeepSetsRequest>(request.fields));
  if (!pod_.storage) return json::object();
  return nothing(saves_.remove_sets(pod_.storage, pod_.config.job_uid, asked));
}

Result<json> Seat::report(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::ReportRequest>(request.fields));
  wire::RankReport report = make_report(asked.since, asked.every);
  if (asked.max_bytes > 0) wire::keep_within(report, asked.max_bytes);
  return json(report);
}

}  // namespace bsp::sidecar
