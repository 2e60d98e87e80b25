// The two threads that carry a checkpoint: capture socket -> TLS at the source, TLS -> files at the target.
//
// On the wire, after the request `checkpoint` was answered with {"ok": true}: the frames of sidecar/transfer/stream.h
// from source to target, and one link frame back, the verdict: {"ok": true, "files", "bytes"} when every file was
// verified, else {"error"}, which may come at any time.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/net/link.h"
#include "sidecar/transfer/stream.h"

namespace bsp::sidecar {

inline constexpr std::chrono::seconds kAbandonTimeout{5};  // for criu to exit after `abandon`

// The totals of a successful stream.
struct StreamEnd {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t transfer_ns = 0;  // first byte -> verified
};

// Interrupts a thread that is blocked on a stream.
class Interrupter {
 public:
  void set(int fd);  // -1: the stream is about to be closed
  void interrupt();
  [[nodiscard]] bool interrupted();

 private:
  std::mutex mutex_;
  int fd_ = -1;
  bool interrupted_ = false;
};

// A connection opened ahead of time. If that failed, the link isn't connected and its first call tries again.
struct EarlyConnection {
  net::Peer target;
  std::future<std::unique_ptr<net::Link>> link;
};
std::future<std::unique_ptr<net::Link>> open_link(const net::TlsContext& context, const net::Peer& target);

// The destructor joins the thread; interrupt it first.
struct Outgoing {
  std::string migration;
  std::future<std::unique_ptr<net::Link>> link;  // from EarlyConnection, if there is one
  std::unique_ptr<transfer::CaptureSession> capture;
  Interrupter interrupter;
  bool dump_asked = false;
  bool dump_ended = false;               // criu has exited, with success or failure
  std::optional<Result<StreamEnd>> end;  // the thread's result
  std::jthread thread;
};

struct Incoming {
  std::string migration;
  std::unique_ptr<transfer::Receiver> receiver;
  Interrupter interrupter;
  std::jthread thread;
};

// Connects to the target, calls `connected` and relays until the verdict. Runs in its own thread.
Result<StreamEnd> run_outgoing(Outgoing& outgoing, const net::TlsContext& context, const net::Peer& target,
                               const std::function<void()>& connected);

// Receives the stream and answers with the verdict. Runs in its own thread.
Result<StreamEnd> run_incoming(Incoming& incoming, net::TlsStream stream);

}  // namespace bsp::sidecar
