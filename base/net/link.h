// The transport of crds/wire.h: framed requests and answers over TLS 1.3, both ends authenticated.
//
// Three ends of the same wire:
//   Link        a blocking client, for threads that can wait (the operator, tests)
//   LinkPeer    a client on an event loop, answers come as callbacks (sidecar to sidecar)
//   LinkServer  the serving end on an event loop; a handler may answer at once or later
//
// A client knows whom it wants to talk to: the connection is dropped before the first request if the
// peer's certificate names somebody else. Certificates: base/net/pki.h. Frames: base/net/frame.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/error.h"
#include "base/net/frame.h"
#include "base/net/loop.h"
#include "base/net/tls.h"
#include "base/net/tls_stream.h"

namespace bsp::net {

using Answer = Frame;  // header: the answer's fields beside "ok"; body: raw bytes

struct Peer {
  std::string address;   // ip:port
  std::string identity;  // CN its certificate must have
};

// --- Blocking client -------------------------------------------------------------------------------
// Connects at the first call and keeps the connection. All verbs are idempotent, so a kept connection
// that turns out to be dead is replaced and the request sent again, once. After a timeout the
// connection is dropped (its answer may still be under way) and the next call opens another one.
// Errors of the other side come back with their code; kUnavailable and kTimeout are this side's.
class Link {
 public:
  Link(TlsContext context, Peer peer) : context_(std::move(context)), peer_(std::move(peer)) {}

  Result<void> connect(std::chrono::nanoseconds timeout);
  // `fields` is an object; the verb is added to it. `timeout` spans connecting, sending and answering.
  Result<Answer> call(std::string_view verb, nlohmann::json fields, std::chrono::nanoseconds timeout,
                      std::string_view body = {});
  // After a call that the peer answered by taking the connection over (checkpoint): its byte stream.
  Result<TlsStream> take_over();

  void close() { stream_.reset(); }
  [[nodiscard]] const Peer& peer() const { return peer_; }

 private:
  Result<Answer> exchange(std::string_view head, std::string_view body, SteadyTime deadline);

  TlsContext context_;
  Peer peer_;
  std::optional<TlsStream> stream_;
  FrameReader reader_;
};

class TlsConnection;

// --- Client on a loop --------------------------------------------------------------------------------
// Requests may be sent without waiting for earlier answers. Every callback is called exactly once, in
// the loop's thread; with an error if the connection fails, the deadline passes, or the LinkPeer dies.
class LinkPeer {
 public:
  using Done = std::move_only_function<void(Result<Answer>)>;
  using LimitsOf = MessageLimits (*)(std::string_view verb);  // of the answer to it
  static MessageLimits any_answer(std::string_view) { return kAnyFrame; }

  // An answer beyond its limits, and one to no question, end the connection.
  LinkPeer(Loop& loop, TlsContext context, Peer peer, LimitsOf limits_of = any_answer);
  ~LinkPeer();
  LinkPeer(const LinkPeer&) = delete;
  LinkPeer& operator=(const LinkPeer&) = delete;

  void connect();  // ahead of the first call; does nothing while a connection is there
  void call(std::string_view verb, nlohmann::json fields, std::string body, std::chrono::nanoseconds timeout,
            Done done);
  [[nodiscard]] const Peer& peer() const { return peer_; }

 private:
  struct Pending {
    Done done;
    Loop::TimerId timer;
    MessageLimits limits;
  };
  void drop(Error error);

  Loop& loop_;
  TlsContext context_;
  Peer peer_;
  LimitsOf limits_of_;
  std::shared_ptr<TlsConnection> connection_;
  std::list<Pending> pending_;
};

// --- Server on a loop --------------------------------------------------------------------------------
struct Request {
  std::string peer;  // identity of who asks
  std::string verb;
  nlohmann::json fields;
  std::string body;
};

// The right to answer one request: exactly one of its functions may be called, once, from any thread,
// as long as the loop lives. Dropped without an answer it tells the peer so.
class Reply {
 public:
  using TakenOver = std::move_only_function<void(Result<TlsStream>)>;

  Reply(Loop& loop, std::weak_ptr<TlsConnection> connection);
  Reply(Reply&& other) noexcept;
  Reply& operator=(Reply&& other) noexcept;
  ~Reply();

  void ok(nlohmann::json fields = nlohmann::json::object(), std::string body = {});
  void error(const Error& error);
  void result(Result<nlohmann::json> result);
  // Answers {"ok": true}; once that is sent the connection leaves the loop and is given to `then` (in
  // the loop's thread: move it to a thread of its own).
  void take_over(TakenOver then);

 private:
  void send(nlohmann::json header, std::string body);

  Loop* loop_ = nullptr;  // null: answered
  std::weak_ptr<TlsConnection> connection_;
};

// Requests of one connection are handed out one after the other: the next one when the one before is
// answered. Connections do not wait for each other.
class LinkServer {
 public:
  using Handler = std::function<void(Request, Reply)>;
  using LimitsOf = std::function<MessageLimits(const std::string& peer)>;  // of a request of that identity
  static MessageLimits any_request(const std::string&) { return kAnyFrame; }

  // Address "0.0.0.0:7600"; port 0 lets the system choose.
  static Result<std::unique_ptr<LinkServer>> listen(Loop& loop, TlsContext context, const std::string& address,
                                                    Handler handler, LimitsOf limits_of = any_request);
  ~LinkServer();
  LinkServer(const LinkServer&) = delete;
  LinkServer& operator=(const LinkServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;

 private:
  struct State;
  explicit LinkServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace bsp::net
