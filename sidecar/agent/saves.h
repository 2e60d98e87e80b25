// A rank's part of a checkpoint set, at its source: wire verb save.
//
//   save ──> kDumping (criu streams into the capture socket, a thread keeps it in memory)
//               ──bsp-init: dumped──> kDumped: the program may go on, and the thread writes the image into the storage
//                                        ──synced──> kStored         any failure ──> kFailed
//
// No rank waits for the storage: once the image is in memory, the next epoch may open. There is one image in memory at a time; a
// save that comes while the storage still takes the last one fails. Everything but the thread happens in the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/net/loop.h"
#include "crds/requests.h"
#include "crds/wire.h"
#include "sidecar/agent/stored_images.h"
#include "sidecar/agent/worker.h"
#include "sidecar/control/messages.h"
#include "sidecar/transfer/stream.h"

namespace bsp::sidecar {

class Saves {
 public:
  struct Hooks {
    std::function<Result<void>(const control::ToInit&)> send_to_init;
    std::function<void()> changed;  // the status has changed
  };

  // `held`: a directory of the sidecar's own, on the pod's tmpfs.
  Saves(net::Loop& loop, std::string images_dir, std::string held, Hooks hooks);
  ~Saves();
  Saves(const Saves&) = delete;
  Saves& operator=(const Saves&) = delete;

  [[nodiscard]] const std::optional<wire::SaveStatus>& status() const { return status_; }

  // The caller has made sure that the program is stopped at a gate. Asking again for the same set changes nothing.
  Result<void> save(std::uint64_t set, ImageKeys image);
  // Older sets of the job, in a thread: a set has many files, and the storage may hang.
  Result<void> remove_sets(const std::shared_ptr<const storage::Storage>& storage, const std::string& job_uid,
                           const wire::KeepSetsRequest& sets);
  // The rank has left the seat: what it has stored is none of the next one's.
  void forget();
  // bsp-init dumps for a set, not for a migration.
  [[nodiscard]] bool is_dumping() const { return capture_ != nullptr; }

  void on_init(const control::FromInit& message);
  void init_lost();

 private:
  void set_phase(wire::SavePhase phase);
  void fail_save(const std::string& why);
  void on_held(Result<std::uint64_t> bytes);
  void on_stored(const Result<StoredRank>& stored, const std::shared_ptr<const storage::Base>& base);
  void keep_base(std::shared_ptr<const storage::Base> base);
  void end_dump();
  [[nodiscard]] std::string dump_name() const { return wire::set_name(status_ ? status_->set : 0); }

  net::Loop& loop_;
  const std::string images_dir_, held_;
  Hooks hooks_;
  std::optional<wire::SaveStatus> status_;
  std::shared_ptr<Worker> cleaner_;                    // the last one
  std::shared_ptr<Worker> worker_;                     // the last one
  std::shared_ptr<transfer::CaptureSession> capture_;  // while criu dumps
  std::shared_ptr<const storage::Base> base_;  // on which the next image may build; with the thread while there is one
  bool was_forgotten_ = false;                 // since the thread began
  bool dump_ended_ = false;                    // criu has exited, with success or failure
  std::optional<Result<std::uint64_t>> held_bytes_;  // the thread's result
  std::uint64_t held_ns_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace bsp::sidecar
