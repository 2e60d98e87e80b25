// The checkpoint of one migration, at either end: wire verbs send, receive, checkpoint, restore, discard.
//
//   source   send ──connected──> kDumping (criu streams into the capture socket, a thread relays it)
//                 ──target verified──> kSent        any failure ──> kFailed, the program is still stopped
//   target   receive ──> kReceiving ──stream verified──> kReceived ──restore──> kRestoring ──> kRestored
//            load, the same from the checkpoint storage; restores by itself
//
// A stream has its own thread while it lasts; everything else happens in the loop's thread. The source reports
// kFailed only when criu has detached from the program, so that it can be continued safely.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/core/backoff.h"
#include "base/net/link.h"
#include "crds/wire.h"
#include "sidecar/agent/stored_images.h"
#include "sidecar/agent/transfer_threads.h"
#include "sidecar/agent/worker.h"
#include "sidecar/control/messages.h"
#include "sidecar/transfer/stream.h"

namespace bsp::sidecar {

class Transfers {
 public:
  struct Hooks {
    std::function<Result<void>(const control::ToInit&)> send_to_init;
    std::function<void()> changed;     // the status has changed
    std::function<bool()> other_dump;  // criu dumps for a checkpoint set
  };

  Transfers(net::Loop& loop, net::TlsContext context, std::string images_dir, Hooks hooks);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  [[nodiscard]] const wire::TransferStatus& status() const { return status_; }

  // Source. Opens the connection for a later send(), so that its handshakes are not part of the pause.
  void connect_early(const net::Peer& target);
  // The caller has made sure that the program is stopped at a gate.
  Result<void> send(const std::string& migration, const net::Peer& target);

  // Target. `restore_at_once`: calls restore() as soon as every file is verified. The copy stays stopped.
  Result<void> receive(const std::string& migration, const std::string& from_pod, bool restore_at_once = false);
  void checkpoint(const std::string& peer, const std::string& migration, net::Reply reply);
  Result<void> restore(const std::string& migration);
  // A rank's image of a checkpoint set, as if it had been received; restored as soon as it is verified.
  // One that has failed is tried again after a while, which grows.
  // `ignore_files`: files on shared volumes may have changed since. If some have grown, it stays kReceived although the process is there:
  // asked again, when every rank has accepted the set, it cuts them off and is kRestored.
  Result<void> load(const std::string& migration, const ImageKeys& image, const std::string& digest,
                    bool ignore_files = false);

  // Both. Answers when nothing of it is left here. `continued`: the restored process has continued here, so there is
  // nothing to discard any more.
  void discard(const std::string& migration, bool continued, net::Reply reply);

  // Both. The rank has left this seat, or has never come: forgets what it was part of.
  void forget();

  void on_init(const control::FromInit& message);
  void init_lost();

  // After a killed sidecar: what was received or restored is still valid, an unfinished stream is lost.
  [[nodiscard]] nlohmann::json saved() const;
  void adopt(const nlohmann::json& saved);

 private:
  void set_phase(wire::TransferPhase phase);
  void fail_transfer(const std::string& why);
  void on_sent(const std::string& migration, Result<StreamEnd> end);
  void on_received(const std::string& migration, Result<StreamEnd> end);
  void on_loaded(const std::string& migration, const Result<StreamEnd>& end);
  void finish_receipt(const Result<StreamEnd>& end);
  void finish_outgoing();
  void on_restored(bool ahead);
  void on_hello(const control::Hello& hello);
  void answer_discards();
  void remove_files(const std::string& migration);

  net::Loop& loop_;
  net::TlsContext context_;
  std::string images_dir_;
  Hooks hooks_;
  wire::TransferStatus status_;
  struct Expected {
    std::string from_pod;  // who may stream
    bool restore_at_once = false;
    bool ignore_files = false;
    bool ahead = false;  // files on shared volumes are ahead of the process, which is restored
  };
  Expected expected_;  // target
  [[nodiscard]] bool holds_copy() const;
  std::optional<EarlyConnection> early_connection_;
  std::unique_ptr<Outgoing> outgoing_;
  std::unique_ptr<Incoming> incoming_;
  struct Loading {
    std::shared_ptr<Worker> worker;  // the last one; it may still be waiting for the storage; null: none was loaded
    Backoff pauses{std::chrono::seconds(1), std::chrono::seconds(30)};  // after each failure of one set
    std::chrono::steady_clock::time_point again{};
    bool waits = false;  // for that
  };
  Loading loading_;
  struct Discard {
    std::string migration;
    net::Reply reply;
  };
  std::vector<Discard> discards_;  // waiting for bsp-init's `discarded`
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace bsp::sidecar
