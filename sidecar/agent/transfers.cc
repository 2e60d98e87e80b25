#include "sidecar/agent/transfers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/core/read_file.h"
#include "base/json/bounded.h"
#include "base/json/fields.h"
#include "base/json/utf8.h"
#include "sidecar/control/notes.h"
#include "sidecar/transfer/file_sizes.h"

namespace bsp::sidecar {

using wire::TransferPhase;
namespace {

// Of the files that bsp-init compares or, with `ignore_files`, of all that the program had open on shared volumes.
Result<void> forget_noted_sizes(const std::string& directory, bool ignore_files) {
  auto text = read_file(directory + "/" + std::string(control::kNotesFile));
  if (!text && text.error().code == ErrorCode::kNotFound) return {};
  if (!text) return std::unexpected(text.error());
  BSP_TRY(const control::Notes notes, control::decode_notes(*text));
  transfer::Paths of;
  for (const control::NotedFile& file : notes.files)
    if (file.open != 0 && (ignore_files || file.read_only == 0)) of.insert(file.path);
  return of.empty() ? Result<void>() : transfer::forget_file_sizes(directory, of);
}

}  // namespace

Transfers::Transfers(net::Loop& loop, net::TlsContext context, std::string images_dir, Hooks hooks)
    : loop_(loop), context_(std::move(context)), images_dir_(std::move(images_dir)), hooks_(std::move(hooks)) {}

Transfers::~Transfers() {
  *alive_ = false;
  if (outgoing_) {
    outgoing_->capture->abort("the sidecar is exiting");
    outgoing_->interrupter.interrupt();
  }
  if (incoming_) incoming_->interrupter.interrupt();
  if (loading_.worker) loading_.worker->give_up();
}

void Transfers::set_phase(TransferPhase phase) {
  status_.phase = phase;
  log_info("transfer", {{"migration", status_.migration}, {"phase", to_string(phase)}});
  hooks_.changed();
}

void Transfers::fail_transfer(const std::string& why) {
  status_.error = why;
  expected_.ahead = false;
  if (loading_.worker) loading_.again = std::chrono::steady_clock::now() + loading_.pauses.next();
  log_warning("transfer failed", {{"migration", status_.migration}, {"reason", why}});
  set_phase(TransferPhase::kFailed);
}

// --- Source ------------------------------------------------------------------------------------------

void Transfers::connect_early(const net::Peer& target) {
  if (early_connection_ && early_connection_->target.address == target.address &&
      early_connection_->target.identity == target.identity)
    return;
  early_connection_ = EarlyConnection{target, open_link(context_, target)};
}

Result<void> Transfers::send(const std::string& migration, const net::Peer& target) {
  if (!transfer::valid_migration(migration))
    return fail(ErrorCode::kInvalid, std::format("\"{}\" is not a valid migration name", migration));
  if (status_.migration == migration && status_.phase == TransferPhase::kSent) return {};
  if (outgoing_) {
    if (outgoing_->migration == migration) return {};
    return fail(ErrorCode::kConflict, std::format("migration {} is being sent", outgoing_->migration));
  }
  BSP_TRY(auto capture, transfer::CaptureSession::open(images_dir_, migration));
  outgoing_ = std::make_unique<Outgoing>();
  outgoing_->migration = migration;
  outgoing_->capture = std::move(capture);
  if (auto ahead = std::exchange(early_connection_, std::nullopt);
      ahead && ahead->target.address == target.address && ahead->target.identity == target.identity)
    outgoing_->link = std::move(ahead->link);
  status_ = {};
  status_.migration = migration;

  auto connected = [this, alive = alive_, migration] {
    if (!*alive || !outgoing_ || outgoing_->migration != migration || outgoing_->interrupter.interrupted()) return;
    outgoing_->dump_asked = true;
    if (auto sent = hooks_.send_to_init(control::Dump{.migration = migration}); !sent) {
      outgoing_->dump_ended = true;
      outgoing_->capture->abort(sent.error().message);
    }
  };
  outgoing_->thread =
      std::jthread([this, alive = alive_, &loop = loop_, out = outgoing_.get(), context = context_, target, connected] {
        auto end = run_outgoing(*out, context, target, [&] { loop.post(connected); });
        loop.post([this, alive, migration = out->migration, end = std::move(end)]() mutable {
          if (*alive) on_sent(migration, std::move(end));
        });
      });
  set_phase(TransferPhase::kDumping);  // saved and reported while the thread connects to the target
  return {};
}

void Transfers::on_sent(const std::string& migration, Result<StreamEnd> end) {
  if (!outgoing_ || outgoing_->migration != migration) return;
  outgoing_->end = std::move(end);
  if (!*outgoing_->end && outgoing_->dump_asked && !outgoing_->dump_ended) {
    // The stream broke before or while criu was dumping: makes criu stop.
    (void)hooks_.send_to_init(control::Abandon{.migration = migration});
    loop_.after(kAbandonTimeout, [this, alive = alive_, migration] {
      if (!*alive || !outgoing_ || outgoing_->migration != migration) return;
      outgoing_->dump_ended = true;
      finish_outgoing();
    });
  }
  finish_outgoing();
}

void Transfers::finish_outgoing() {
  if (!outgoing_ || !outgoing_->end) return;
  if (outgoing_->dump_asked && !outgoing_->dump_ended) return;
  Result<StreamEnd> end = std::move(*outgoing_->end);
  outgoing_.reset();  // joins the thread, which has posted its last task
  if (!end) {
    fail_transfer(end.error().message);
  } else {
    status_.files = end->files;
    status_.bytes = end->bytes;
    status_.transfer_ns = end->transfer_ns;
    set_phase(TransferPhase::kSent);
  }
  answer_discards();
}

// --- Target ------------------------------------------------------------------------------------------

Result<void> Transfers::receive(const std::string& migration, const std::string& from_pod, bool restore_at_once) {
  if (!transfer::valid_migration(migration))
    return fail(ErrorCode::kInvalid, std::format("\"{}\" is not a valid migration name", migration));
  switch (status_.phase) {
    case TransferPhase::kIdle:
    case TransferPhase::kFailed:
      break;
    case TransferPhase::kReceiving:
    case TransferPhase::kReceived:
    case TransferPhase::kRestoring:
    case TransferPhase::kRestored:
      if (status_.migration == migration && expected_.from_pod == from_pod) return {};
      [[fallthrough]];
    case TransferPhase::kDumping:
    case TransferPhase::kSent:
      return fail(ErrorCode::kConflict, std::format("this pod is already taking part in migration {} ({})",
                                                    status_.migration, to_string(status_.phase)));
  }
  if (incoming_) return fail(ErrorCode::kConflict, "the previous stream has not ended yet", true);
  BSP_CHECK_OK(transfer::remove_checkpoint(images_dir_, migration));
  expected_ = {.from_pod = from_pod, .restore_at_once = restore_at_once};
  status_ = {};
  status_.migration = migration;
  set_phase(TransferPhase::kReceiving);
  return {};
}

void Transfers::checkpoint(const std::string& peer, const std::string& migration, net::Reply reply) {
  if (status_.phase != TransferPhase::kReceiving || status_.migration != migration || expected_.from_pod != peer)
    return reply.error(
        {ErrorCode::kRefused, std::format("no checkpoint of migration {} is expected from {}", migration, peer)});
  if (incoming_) return reply.error({ErrorCode::kConflict, "its stream has started already"});
  auto receiver = transfer::Receiver::open(images_dir_, migration);
  if (!receiver) {
    reply.error(receiver.error());
    return fail_transfer(receiver.error().message);
  }
  incoming_ = std::make_unique<Incoming>();
  incoming_->migration = migration;
  incoming_->receiver = std::move(*receiver);
  reply.take_over([this, alive = alive_, migration](Result<net::TlsStream> stream) {
    if (!*alive || !incoming_ || incoming_->migration != migration) return;
    if (!stream) return on_received(migration, std::unexpected(stream.error()));
    auto shared = std::make_shared<net::TlsStream>(std::move(*stream));
    incoming_->thread = std::jthread([this, alive, &loop = loop_, in = incoming_.get(), shared] {
      auto end = run_incoming(*in, std::move(*shared));
      loop.post([this, alive, migration = in->migration, end = std::move(end)]() mutable {
        if (*alive) on_received(migration, std::move(end));
      });
    });
  });
}

void Transfers::on_received(const std::string& migration, Result<StreamEnd> end) {
  if (!incoming_ || incoming_->migration != migration) return;
  incoming_.reset();  // joins the thread; an incomplete checkpoint removes its files
  if (status_.migration != migration || status_.phase != TransferPhase::kReceiving) {
    remove_files(migration);  // discarded meanwhile
  } else {
    finish_receipt(end);
  }
  answer_discards();
}

void Transfers::finish_receipt(const Result<StreamEnd>& end) {
  if (!end) {
    // A complete checkpoint whose verdict could not be sent is useless: the source has given up.
    remove_files(status_.migration);
    return fail_transfer(end.error().message);
  }
  status_.files = end->files;
  status_.bytes = end->bytes;
  status_.transfer_ns = end->transfer_ns;
  status_.phase = TransferPhase::kReceived;
  const auto restores = expected_.restore_at_once ? restore(status_.migration) : Result<void>();
  // For a checkpoint set, kReceived says that this rank has accepted it.
  if (!restores && loading_.worker && expected_.from_pod.empty()) return fail_transfer(restores.error().message);
  // If bsp-init isn't connected now, the operator retries, since it sees kReceived.
  if (!expected_.restore_at_once || !restores) set_phase(TransferPhase::kReceived);
}

Result<void> Transfers::load(const std::string& migration, const ImageKeys& image, const std::string& digest,
                             bool ignore_files) {
  const bool same = status_.migration == migration;
  if (same && status_.phase == TransferPhase::kReceived) return restore(migration);
  if (same && status_.phase != TransferPhase::kIdle && status_.phase != TransferPhase::kFailed) return {};
  if (status_.phase != TransferPhase::kIdle && status_.phase != TransferPhase::kFailed)
    return fail(ErrorCode::kConflict, std::format("this pod is already taking part in migration {} ({})",
                                                  status_.migration, to_string(status_.phase)));
  if (incoming_ || (loading_.worker && !loading_.worker->ended()))
    return fail(ErrorCode::kConflict, "the previous image has not ended yet", true);
  const auto now = std::chrono::steady_clock::now();
  if (!same) loading_.pauses.reset();
  if (same && status_.phase == TransferPhase::kFailed && now < loading_.again) {
    // Whatever was in its way may last.
    if (!std::exchange(loading_.waits, true))
      loop_.after(loading_.again - now, [this, alive = alive_, migration, image, digest, ignore_files] {
        if (!*alive) return;
        loading_.waits = false;
        if (status_.migration != migration || status_.phase != TransferPhase::kFailed) return;
        loading_.again = {};
        if (const auto begun = load(migration, image, digest, ignore_files); !begun)
          fail_transfer(begun.error().message);
      });
    return {};
  }
  BSP_CHECK_OK(transfer::remove_checkpoint(images_dir_, migration));
  BSP_TRY(auto opened, transfer::Receiver::open(images_dir_, migration));
  expected_.ahead = false;
  expected_.restore_at_once = true;
  expected_.ignore_files = ignore_files;
  expected_.from_pod.clear();
  status_ = {};
  status_.migration = migration;
  loading_.worker = std::make_shared<Worker>(loop_);
  Worker::start(loading_.worker,
                [this, alive = alive_, worker = loading_.worker, migration, image, digest, ignore_files,
                 directory = images_dir_, receiver = std::shared_ptr<transfer::Receiver>(std::move(opened))]() mutable {
                  fault_point("transfer.loading");
                  auto end = load_image(image, digest, *receiver, worker->given_up());
                  receiver.reset();  // an incomplete image removes its files
                  if (end)
                    if (auto freed = forget_noted_sizes(directory + "/" + migration, ignore_files); !freed)
                      end = std::unexpected(freed.error());
                  worker->post_last([this, alive, migration, end = std::move(end)] {
                    if (*alive) on_loaded(migration, end);
                  });
                });
  set_phase(TransferPhase::kReceiving);
  return {};
}

void Transfers::on_loaded(const std::string& migration, const Result<StreamEnd>& end) {
  if (status_.migration != migration || status_.phase != TransferPhase::kReceiving) return;
  status_.unusable = !end && is_damage(end.error());
  if (!end && end.error().code == ErrorCode::kNoSpace) {
    Error with_remedy = end.error();
    with_remedy.message += "; raise spec.checkpoint.sizeLimit, the most that a pod can receive";
    return finish_receipt(std::unexpected(with_remedy));
  }
  finish_receipt(end);
}

Result<void> Transfers::restore(const std::string& migration) {
  fault_point("restore.begin");
  if (status_.migration == migration &&
      (status_.phase == TransferPhase::kRestoring || status_.phase == TransferPhase::kRestored))
    return {};
  if (status_.migration != migration || status_.phase != TransferPhase::kReceived)
    return fail(ErrorCode::kConflict, std::format("no checkpoint of migration {} was received", migration));
  BSP_CHECK_OK(hooks_.send_to_init(control::Restore{
      .migration = migration, .ignore_files = expected_.ignore_files ? 1 : 0, .cut = expected_.ahead ? 1 : 0}));
  set_phase(TransferPhase::kRestoring);
  return {};
}

void Transfers::remove_files(const std::string& migration) {
  if (auto removed = transfer::remove_checkpoint(images_dir_, migration); !removed)
    log_warning("cannot remove a checkpoint's files", {{"reason", removed.error().message}});
}

// The process is restored, and tmpfs pages count as the pod's memory. In a thread, because freeing a gigabyte takes a
// while and the job waits for this rank.
void Transfers::on_restored(bool ahead) {
  expected_.ahead = ahead;
  std::thread([directory = images_dir_, migration = status_.migration] {
    (void)transfer::remove_checkpoint(directory, migration);
  }).detach();
  set_phase(ahead ? TransferPhase::kReceived : TransferPhase::kRestored);
}

bool Transfers::holds_copy() const {
  return status_.phase == TransferPhase::kRestored || status_.phase == TransferPhase::kRestoring ||
         (status_.phase == TransferPhase::kReceived && expected_.ahead);
}

// --- Both --------------------------------------------------------------------------------------------

void Transfers::discard(const std::string& migration, bool continued, net::Reply reply) {
  fault_point("transfer.discard");
  if (status_.migration != migration) return reply.ok();  // nothing of it here
  if (loading_.worker && !loading_.worker->ended())
    return reply.error({ErrorCode::kConflict, "the image is being read from the storage", true});
  const bool restored = holds_copy();
  if (restored && continued)
    return reply.error(
        {ErrorCode::kConflict, std::format("the copy of migration {} has been continued here", migration)});
  discards_.push_back({migration, std::move(reply)});
  if (outgoing_) {
    outgoing_->capture->abort("the migration was abandoned");
    outgoing_->interrupter.interrupt();
  } else if (incoming_) {
    incoming_->interrupter.interrupt();
  } else if (restored) {
    (void)hooks_.send_to_init(control::Discard{.migration = migration});
    // Lost with the connection: sent again with the next hello.
  }
  answer_discards();
}

void Transfers::forget() {
  if (outgoing_ || incoming_) return;
  expected_ = {};
  early_connection_.reset();
  status_ = {};
  hooks_.changed();
}

void Transfers::answer_discards() {
  if (outgoing_ || incoming_ || discards_.empty()) return;
  if (holds_copy() && status_.migration == discards_.front().migration) return;  // bsp-init will answer `discarded`
  remove_files(discards_.front().migration);
  if (status_.migration == discards_.front().migration) {
    expected_.from_pod.clear();
    status_ = {};
    set_phase(TransferPhase::kIdle);
  }
  for (Discard& discard : std::exchange(discards_, {})) discard.reply.ok();
}

void Transfers::on_init(const control::FromInit& message) {
  const auto is_current = [this](const auto& m) { return m.migration == status_.migration; };
  std::visit(control::Handlers{
                 [&](const control::Hello& m) { on_hello(m); },
                 [&](const control::Dumped& m) {
                   if (!is_current(m) || !outgoing_) return;
                   fault_point("transfer.dumped");
                   status_.dump_ns = m.ns;
                   outgoing_->dump_ended = true;
                   outgoing_->capture->finish();
                   finish_outgoing();
                 },
                 [&](const control::DumpFailed& m) {
                   if (!is_current(m) || !outgoing_) return;
                   outgoing_->dump_ended = true;
                   outgoing_->capture->abort(m.message);
                   finish_outgoing();
                 },
                 [&](const control::Restored& m) {
                   if (!is_current(m) || status_.phase != TransferPhase::kRestoring) return;
                   status_.restore_ns = m.ns;
                   status_.note = as_text(m.note);
                   cut_text(status_.note, wire::kMostText);
                   fault_point("restore.done");
                   on_restored(m.ahead != 0);
                 },
                 [&](const control::RestoreFailed& m) {
                   if (!is_current(m) || status_.phase != TransferPhase::kRestoring) return;
                   // Of a set: it is whole, and can't be restored here.
                   status_.unusable = loading_.worker && m.cause == control::RestoreCause::kRefused;
                   status_.suspect = loading_.worker && m.cause == control::RestoreCause::kImage;
                   fail_transfer(m.message);
                   answer_discards();
                 },
                 [&](const control::Discarded& m) {
                   if (!is_current(m)) return;
                   status_.phase = TransferPhase::kIdle;
                   answer_discards();
                 },
                 [](const auto&) {},  // concerns the program, not a transfer
             },
             message);
}

// After a reconnect: compares bsp-init's complete state with this one.
void Transfers::on_hello(const control::Hello& hello) {
  using control::ProgramState;
  const auto state = hello.state;
  bool same = hello.migration == status_.migration;
  if (outgoing_ && outgoing_->dump_asked && !outgoing_->dump_ended && same) {
    if (state == ProgramState::kDumped) {
      outgoing_->dump_ended = true;
      outgoing_->capture->finish();
    } else if (state != ProgramState::kDumping) {
      outgoing_->dump_ended = true;
      outgoing_->capture->abort("the dump ended while bsp-init was disconnected");
    }
  } else if (!outgoing_ && state == ProgramState::kDumping && !hooks_.other_dump()) {
    // Its stream died with the previous sidecar.
    (void)hooks_.send_to_init(control::Abandon{.migration = hello.migration});
  }
  // The sidecar before this one ended, or could not write, between asking for it and noting that.
  const bool unknown = status_.phase == TransferPhase::kIdle || status_.phase == TransferPhase::kFailed;
  const bool holds = state == ProgramState::kRestored || state == ProgramState::kRestoring;
  if (unknown && holds && transfer::valid_migration(hello.migration) && !outgoing_ && !incoming_ && discards_.empty()) {
    log_warning("bsp-init holds a copy that wasn't noted", {{"migration", hello.migration}});
    expected_ = {};
    status_ = {};
    status_.migration = hello.migration;
    same = true;
    set_phase(TransferPhase::kRestoring);
  }
  if (same && state == ProgramState::kRestored &&
      (status_.phase == TransferPhase::kRestoring || status_.phase == TransferPhase::kReceived)) {
    // What was asked for last may be lost, and is asked for again. A sidecar that was restarted doesn't know that files are ahead.
    on_restored(hello.ahead != 0);
  } else if (same && state == ProgramState::kWaiting && status_.phase == TransferPhase::kRestoring) {
    fail_transfer("the restore ended while the sidecar was down");
  }
  bool copy_gone = state == ProgramState::kWaiting || state == ProgramState::kExited;
  if (!discards_.empty() && status_.migration == discards_.front().migration && copy_gone)
    status_.phase = TransferPhase::kIdle;
  else if (!discards_.empty() && !outgoing_ && !incoming_)
    (void)hooks_.send_to_init(control::Discard{.migration = discards_.front().migration});
  finish_outgoing();
  answer_discards();
}

void Transfers::init_lost() {
  if (outgoing_ && outgoing_->dump_asked && !outgoing_->dump_ended)
    loop_.after(kAbandonTimeout, [this, alive = alive_, migration = outgoing_->migration] {
      if (!*alive || !outgoing_ || outgoing_->migration != migration || outgoing_->dump_ended) return;
      outgoing_->dump_ended = true;
      outgoing_->capture->abort("bsp-init has disconnected");
      finish_outgoing();
    });
}

nlohmann::json Transfers::saved() const {
  wire::RankStatus carrier;
  carrier.transfer = status_;
  return {{"status", nlohmann::json(carrier)}, {"from_pod", expected_.from_pod}};
}

void Transfers::adopt(const nlohmann::json& saved) {
  auto carrier = wire::rank_status_from_json(part_at(saved, "status"));
  if (!carrier) return;
  status_ = carrier->transfer;
  expected_.from_pod = text_at(saved, "from_pod");
  if (status_.phase == TransferPhase::kReceiving || status_.phase == TransferPhase::kDumping) {
    if (status_.phase == TransferPhase::kReceiving) remove_files(status_.migration);
    fail_transfer("the sidecar was restarted in the middle of the stream");
  }
}

}  // namespace bsp::sidecar
