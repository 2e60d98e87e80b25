// A framed TLS connection on an event loop, for LinkPeer and LinkServer.
//
//            create            TCP up             handshake done, `ready` called
//   (connect) ────> kConnecting ────> kHandshake ──────────────────────> kOpen ──> kClosed
//   (accept)  ─────────────────────────────┘
//
// Timeouts: 10 s for the handshake, 20 s without progress while a frame is half received or half sent. The owner keeps
// the connection alive; callbacks may close or drop it.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "base/core/error.h"
#include "base/net/frame.h"
#include "base/net/loop.h"
#include "base/net/tls.h"
#include "base/net/tls_stream.h"

namespace bsp::net {

class TlsConnection : public std::enable_shared_from_this<TlsConnection> {
 public:
  struct Events {
    std::function<void(const std::string& identity)> ready;  // called before anything queued is sent
    std::function<MessageLimits()> limits;                   // of the next frame
    std::function<void(Frame)> frame;
    std::function<void(const Error&)> closed;  // once, unless close() was called; after a release too
  };
  using Released = std::move_only_function<void(Result<TlsStream>)>;

  TlsConnection(Loop& loop, TlsSocket socket, TlsRole role, Events events);
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  void start();
  void send(std::string head, std::string body);
  void send(std::shared_ptr<const std::string> frame);  // to several peers: it is not copied
  // While held, the connection reads nothing and delivers no frames.
  void hold(bool held);
  void close();
  // Takes the socket off the loop once everything queued is sent, and passes it to `then`.
  void release(Released then);

  [[nodiscard]] const std::string& identity() const { return identity_; }
  [[nodiscard]] bool closed() const { return phase_ == Phase::kClosed; }

 private:
  enum class Phase { kConnecting, kHandshake, kOpen, kClosed };
  void ready(Loop::Events events);
  void pump();
  Result<bool> advance();  // one step of connecting; true once open
  Result<void> write_queued();
  Result<void> read_frames();
  Result<void> give_frames();
  void finish_release();
  void update_interest();
  void restart_stall_timer();
  void fail_with(const Error& error);

  Loop& loop_;
  TlsSocket socket_;
  Events events_;
  Phase phase_;
  std::string identity_;
  FrameReader reader_;
  // Still to be sent. A list, because an empty one allocates nothing and there are thousands of links.
  std::list<std::shared_ptr<const std::string>> queue_;
  std::size_t sent_of_front_ = 0;
  bool held_ = false;
  bool wants_write_ = false;
  bool wants_read_ = true;
  bool progressed_ = false;
  bool repump_ = false;  // OpenSSL may hold data that epoll doesn't know of
  Released release_;
  Loop::TimerId stall_ = 0;
};

}  // namespace bsp::net
