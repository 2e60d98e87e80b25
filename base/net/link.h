// The transport of crds/wire.h: framed requests and answers over mutually authenticated TLS 1.3.
//
// Three classes implement it:
//   Link        a blocking client, for threads that can wait (the operator, tests)
//   LinkPeer    a client on an event loop; callbacks receive the answers (sidecar to sidecar)
//   LinkServer  a server on an event loop; a handler may answer at once or later
//
// A client names the peer it expects, and drops the connection before the first request if the peer's certificate names
// another. Certificates: base/net/pki.h. Frames: base/net/frame.h.
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

using Answer = Frame;  // header: "ok" and the answer's fields; body: raw bytes

struct Peer {
  std::string address;   // ip:port
  std::string identity;  // the CN that its certificate must have
};

// --- Blocking client -------------------------------------------------------------------------------
// Connects at the first call and keeps the connection. All verbs are idempotent, so if a kept connection turns out to
// be dead, call() reconnects and sends the request once more. A timeout drops the connection, because the answer may
// still arrive on it; the next call opens a new one. Errors from the peer keep their code; kUnavailable and kTimeout
// originate here.
class Link {
 public:
  Link(TlsContext context, Peer peer) : context_(std::move(context)), peer_(std::move(peer)) {}

  Result<void> connect(std::chrono::nanoseconds timeout);
  // `fields` is an object; call() adds the verb. `timeout` covers connecting, sending and the answer.
  Result<Answer> call(std::string_view verb, nlohmann::json fields, std::chrono::nanoseconds timeout,
                      std::string_view body = {});
  // The connection's byte stream, after a call that the peer answered with Reply::take_over (checkpoint).
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

// A network of another kind than TLS (Loop::set_transport), as a simulation has: it decides when a request arrives, and whether
// an answer comes. All in the loop's thread.
class Transport {
 public:
  using Answered = std::move_only_function<void(Result<Answer>)>;
  virtual ~Transport() = default;
  // A connection's number, which no other has. Requests on one connection arrive in order, unless this network loses it.
  virtual std::uint64_t connect(const Peer& peer) = 0;
  // `answered` runs once at most, and never within this call; not at all if the connection was closed meanwhile.
  virtual void send(std::uint64_t connection, const Peer& peer, std::string_view verb, nlohmann::json fields,
                    std::string body, Answered answered) = 0;
};

// A request without a body, encoded once for all the peers it is sent to.
struct EncodedRequest {
  std::string verb;
  std::shared_ptr<const std::string> frame;
};
EncodedRequest encode_request(std::string_view verb, nlohmann::json fields);

// --- Client on a loop --------------------------------------------------------------------------------
// Sends requests without waiting for earlier answers. Each callback runs exactly once, in the loop's thread; it gets an
// error if the connection fails, the timeout expires, or the LinkPeer is destroyed.
class LinkPeer {
 public:
  using Done = std::move_only_function<void(Result<Answer>)>;
  using LimitsOf = MessageLimits (*)(std::string_view verb);  // of the answer to that verb
  static MessageLimits any_answer(std::string_view) { return kAnyFrame; }

  // An answer beyond its limits, or an unsolicited one, ends the connection.
  LinkPeer(Loop& loop, TlsContext context, Peer peer, LimitsOf limits_of = any_answer);
  ~LinkPeer();
  LinkPeer(const LinkPeer&) = delete;
  LinkPeer& operator=(const LinkPeer&) = delete;

  void connect();  // ahead of the first call; does nothing if there is a connection
  void call(std::string_view verb, nlohmann::json fields, std::string body, std::chrono::nanoseconds timeout,
            Done done);
  void call(const EncodedRequest& request, std::chrono::nanoseconds timeout, Done done);
  [[nodiscard]] const Peer& peer() const { return peer_; }

 private:
  struct Pending {
    Done done;
    Loop::TimerId timer;
    MessageLimits limits;
    std::uint64_t number = 0;  // over another transport, whose answers may come in any order
  };
  void call_over(Transport& transport, std::string_view verb, nlohmann::json fields, std::string body,
                 std::chrono::nanoseconds timeout, Done done);
  bool expect(std::string_view verb, std::chrono::nanoseconds timeout, Done done);  // false: there is no connection
  void drop(Error error);

  Loop& loop_;
  TlsContext context_;
  Peer peer_;
  LimitsOf limits_of_;
  std::shared_ptr<TlsConnection> connection_;
  std::shared_ptr<std::uint64_t> carried_;  // the connection over another transport
  std::uint64_t calls_ = 0;                 // over it
  std::list<Pending> pending_;
};

// --- Server on a loop --------------------------------------------------------------------------------
struct Request {
  std::string peer;  // identity of the client
  std::string verb;
  nlohmann::json fields;
  std::string body;
};

// Answers one request. Call exactly one of its functions, once, from any thread, while the loop lives. If it is
// destroyed unused, the peer gets an error.
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
  // Answers {"ok": true}, then takes the connection off the loop and passes it to `then`. `then` runs in the loop's
  // thread: move the stream to another thread.
  void take_over(TakenOver then);

 private:
  void send(nlohmann::json header, std::string body);

  Loop* loop_ = nullptr;  // null: answered
  std::weak_ptr<TlsConnection> connection_;
};

// Handles one request per connection at a time; the next one follows when it is answered. Connections don't wait for
// each other.
class LinkServer {
 public:
  using Handler = std::function<void(Request, Reply)>;
  using LimitsOf = std::function<MessageLimits(const std::string& peer)>;  // of a request from that identity
  static MessageLimits any_request(const std::string&) { return kAnyFrame; }

  // Address: "[::]:7600"; with port 0 the kernel picks one.
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
