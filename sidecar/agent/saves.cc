#include "sidecar/agent/saves.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <format>
#include <utility>
#include <vector>

#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/core/realtime.h"

namespace bsp::sidecar {

using wire::SavePhase;

namespace {

// What criu dumps, as a stream in a file.
Result<std::uint64_t> hold(transfer::CaptureSession& capture, int file) {
  std::uint64_t held = 0;
  auto sink = [&](std::span<const std::byte> piece) -> Result<void> {
    while (!piece.empty()) {
      const ssize_t n = ::write(file, piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        auto failed = fail_errno("keeping the image in memory");
        if (errno == ENOSPC) failed.error().message += "; raise spec.checkpoint.sizeLimit, which has to hold it";
        return failed;
      }
      held += static_cast<std::uint64_t>(n);
      piece = piece.subspan(static_cast<std::size_t>(n));
    }
    return {};
  };
  BSP_CHECK_OK(capture.run(sink));
  return held;
}

// What fails is tried again when the operator asks the next time.
void look_for_orphans(const storage::Storage& storage, const std::string& job_uid, const wire::KeepSetsRequest& sets,
                      const std::atomic<bool>& given_up) {
  const auto marked = storage.mark_job(job_uid, sets.retain ? "" : sets.owner, &given_up);
  if (!marked) return log_warning("the checkpoint sets can't be marked", {{"reason", marked.error().message}});
  if (sets.retain || sets.orphan_seconds == 0) return;
  const storage::Orphans orphans{
      .owner = sets.owner,
      .jobs = sets.jobs,
      .age = std::chrono::seconds(std::min<std::uint64_t>(sets.orphan_seconds, wire::kMostNs / 1'000'000'000))};
  const auto removed = storage.remove_orphans(job_uid, orphans, &given_up);
  if (!removed)
    return log_warning("checkpoint sets of jobs that are gone can't be looked for",
                       {{"reason", removed.error().message}});
  for (const std::string& uid : *removed) log_info("checkpoint sets of a job that is gone are removed", {{"job", uid}});
}

}  // namespace

Saves::Saves(net::Loop& loop, std::string images_dir, std::string held, Hooks hooks)
    : loop_(loop), images_dir_(std::move(images_dir)), held_(std::move(held)), hooks_(std::move(hooks)) {}

Saves::~Saves() {
  *alive_ = false;
  for (const auto& worker : {worker_, cleaner_})
    if (worker) worker->give_up();
  if (capture_) capture_->abort("the sidecar is exiting");
}

void Saves::set_phase(SavePhase phase) {
  status_->phase = phase;
  log_info("checkpoint", {{"set", status_->set}, {"phase", to_string(phase)}});
  hooks_.changed();
}

void Saves::fail_save(const std::string& why) {
  status_->error = why;
  log_warning("checkpoint failed", {{"set", status_->set}, {"reason", why}});
  set_phase(SavePhase::kFailed);
}

Result<void> Saves::save(std::uint64_t set, ImageKeys image) {
  if (status_ && status_->set == set) return {};
  if (capture_) return fail(ErrorCode::kConflict, std::format("set {} is being dumped", status_->set));
  // An earlier set whose verdict is known to everybody: its memory goes as soon as the storage lets go of it.
  const bool busy = worker_ && !worker_->ended();
  status_ = wire::SaveStatus{.set = set};
  if (busy) {
    worker_->give_up();
    fail_save("the checkpoint storage has not taken the image of the set before yet");
    return {};
  }
  auto capture = transfer::CaptureSession::open(images_dir_, dump_name());
  if (!capture) return fail_save(capture.error().message), Result<void>{};
  auto file = memory_file(held_);
  if (!file) return fail_save(file.error().message), Result<void>{};
  capture_ = std::move(*capture);
  dump_ended_ = false;
  held_bytes_.reset();
  // One rank looks for all: they mount the same volumes.
  const auto notes = image.name.rank == 0 ? control::NotedFiles::kWritten : control::NotedFiles::kOpen;
  if (auto asked = hooks_.send_to_init(control::Dump{.migration = dump_name(), .notes = notes}); !asked) {
    capture_.reset();
    return fail_save(asked.error().message), Result<void>{};
  }
  worker_ = std::make_shared<Worker>(loop_);
  was_forgotten_ = false;
  Worker::start(worker_,
                [this, alive = alive_, worker = worker_, capture = capture_, image = std::move(image),
                 base = std::exchange(base_, nullptr), file = std::make_shared<Fd>(std::move(*file))]() mutable {
                  auto bytes = hold(*capture, file->get());
                  capture.reset();
                  fault_point("save.held");
                  const auto say_held = [this, alive, bytes] {
                    if (*alive) on_held(bytes);
                  };
                  if (!bytes) {
                    file.reset();
                    worker->post_last([this, alive, worker, base, say_held] {
                      if (*alive && worker == worker_) keep_base(base);
                      say_held();
                    });
                    return;
                  }
                  worker->post(say_held);
                  auto stored = store_image(image, file->get(), *bytes, base, worker->given_up());
                  file.reset();
                  worker->post_last([this, alive, worker, base, stored = std::move(stored)] {
                    if (*alive && worker == worker_) on_stored(stored, base);
                  });
                });
  set_phase(SavePhase::kDumping);
  return {};
}

void Saves::on_held(Result<std::uint64_t> bytes) {
  if (!capture_) return;
  held_bytes_ = std::move(bytes);
  held_ns_ = realtime_ns();
  if (!*held_bytes_ && !dump_ended_) {
    // There is no room for it: makes criu stop.
    (void)hooks_.send_to_init(control::Abandon{.migration = dump_name()});
    loop_.after(kAbandonTimeout, [this, alive = alive_, set = status_->set] {
      if (!*alive || !capture_ || status_->set != set) return;
      dump_ended_ = true;
      end_dump();
    });
  }
  end_dump();
}

// Only when criu has left the program: until then it can't be continued safely.
void Saves::end_dump() {
  if (!held_bytes_ || !dump_ended_) return;
  const Result<std::uint64_t> bytes = std::move(*held_bytes_);
  held_bytes_.reset();
  capture_.reset();
  if (!bytes) return fail_save(bytes.error().message);
  status_->bytes = *bytes;
  set_phase(SavePhase::kDumped);
}

void Saves::on_stored(const Result<StoredRank>& stored, const std::shared_ptr<const storage::Base>& base) {
  if (!status_ || status_->phase != SavePhase::kDumped) return;
  keep_base(stored ? stored->base : base);
  if (!stored) return fail_save(stored.error().message);
  status_->store_ns = realtime_ns() - held_ns_;
  status_->digest = stored->sealed.digest;
  status_->stored = stored->sealed.bytes;
  status_->base = stored->built_on;
  set_phase(SavePhase::kStored);
}

void Saves::keep_base(std::shared_ptr<const storage::Base> base) {
  if (!was_forgotten_) base_ = std::move(base);
}

void Saves::forget() {
  base_.reset();
  was_forgotten_ = true;
  if (capture_) return;  // its end is still to come
  if (worker_) worker_->give_up();
  status_.reset();
}

Result<void> Saves::remove_sets(const std::shared_ptr<const storage::Storage>& storage, const std::string& job_uid,
                                const wire::KeepSetsRequest& sets) {
  if (cleaner_ && !cleaner_->ended()) return fail(ErrorCode::kConflict, "older sets are being removed", true);
  cleaner_ = std::make_shared<Worker>(loop_);
  Worker::start(cleaner_, [storage, job_uid, sets, worker = cleaner_] {
    std::vector<std::uint64_t> keep = sets.keep;
    std::erase_if(keep, [&](std::uint64_t set) { return std::ranges::contains(sets.bases, set); });
    const auto removed = storage->remove_sets(job_uid, sets.below, keep, &worker->given_up());
    if (!removed)
      log_warning("older checkpoint sets can't be removed", {{"reason", removed.error().message}});
    else if (!removed->empty())
      log_info("older checkpoint sets are removed", {{"below", sets.below}, {"sets", removed->size()}});
    if (!sets.owner.empty()) look_for_orphans(*storage, job_uid, sets, worker->given_up());
  });
  return {};
}

void Saves::on_init(const control::FromInit& message) {
  const auto is_current = [this](const auto& m) { return capture_ && m.migration == dump_name(); };
  std::visit(control::Handlers{
                 [&](const control::Hello& m) {
                   if (!is_current(m) || dump_ended_) return;
                   if (m.state == control::ProgramState::kDumping) return;
                   dump_ended_ = true;
                   if (m.state == control::ProgramState::kDumped)
                     capture_->finish();
                   else
                     capture_->abort("the dump ended while bsp-init was disconnected");
                   end_dump();
                 },
                 [&](const control::Dumped& m) {
                   if (!is_current(m)) return;
                   status_->dump_ns = m.ns;
                   dump_ended_ = true;
                   capture_->finish();
                   end_dump();
                 },
                 [&](const control::DumpFailed& m) {
                   if (!is_current(m)) return;
                   dump_ended_ = true;
                   capture_->abort(m.message);
                   end_dump();
                 },
                 [&](const control::Exited&) {
                   if (!capture_) return;
                   dump_ended_ = true;
                   capture_->abort("the program has ended");
                   end_dump();
                 },
                 [](const auto&) {},
             },
             message);
}

void Saves::init_lost() {
  if (!capture_ || dump_ended_) return;
  loop_.after(kAbandonTimeout, [this, alive = alive_, set = status_->set] {
    if (!*alive || !capture_ || status_->set != set || dump_ended_) return;
    dump_ended_ = true;
    capture_->abort("bsp-init has disconnected");
    end_dump();
  });
}

}  // namespace bsp::sidecar
