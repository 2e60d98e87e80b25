// The client on an event loop.
#include <algorithm>
#include <utility>

#include "base/net/address.h"
#include "base/net/link.h"
#include "base/net/tls_connection.h"

namespace bsp::net {
namespace {

nlohmann::json with_verb(std::string_view verb, nlohmann::json fields) {
  if (!fields.is_object()) fields = nlohmann::json::object();
  fields["verb"] = verb;
  return fields;
}

}  // namespace

EncodedRequest encode_request(std::string_view verb, nlohmann::json fields) {
  return {std::string(verb),
          std::make_shared<const std::string>(encode_frame_head(with_verb(verb, std::move(fields)), 0))};
}

LinkPeer::LinkPeer(Loop& loop, TlsContext context, Peer peer, LimitsOf limits_of)
    : loop_(loop), context_(std::move(context)), peer_(std::move(peer)), limits_of_(limits_of) {}

LinkPeer::~LinkPeer() { drop({ErrorCode::kUnavailable, "the link was closed", true}); }

void LinkPeer::connect() {
  if (connection_ || loop_.transport()) return;
  auto socket = [&]() -> Result<TlsSocket> {
    BSP_TRY(Address address, parse_address(peer_.address));
    BSP_TRY(Fd fd, start_connect(address));
    return TlsSocket(context_, std::move(fd), TlsRole::kClient);
  }();
  if (!socket) {
    // Posted, so that no callback runs inside call().
    loop_.post(
        [&loop = loop_, error = socket.error().in(peer_.identity), failed = std::exchange(pending_, {})]() mutable {
          for (Pending& pending : failed) {
            loop.cancel(pending.timer);
            pending.done(std::unexpected(error));
          }
        });
    return;
  }
  connection_ = std::make_shared<TlsConnection>(
      loop_, std::move(*socket), TlsRole::kClient,
      TlsConnection::Events{
          .ready =
              [this](const std::string& identity) {
                if (identity != peer_.identity)
                  drop({ErrorCode::kRefused, std::format("the peer is \"{}\", not \"{}\"", identity, peer_.identity)});
              },
          .limits = [this] { return pending_.empty() ? MessageLimits{.json = {.bytes = 0}} : pending_.front().limits; },
          .frame =
              [this](Frame frame) {
                Pending first = std::move(pending_.front());
                pending_.pop_front();
                loop_.cancel(first.timer);
                first.done(as_answer(std::move(frame)));
              },
          .closed = [this](const Error& error) { drop(error); }});
  connection_->start();
}

void LinkPeer::call(std::string_view verb, nlohmann::json fields, std::string body, std::chrono::nanoseconds timeout,
                    Done done) {
  if (Transport* other = loop_.transport())
    return call_over(*other, verb, std::move(fields), std::move(body), timeout, std::move(done));
  if (!expect(verb, timeout, std::move(done))) return;
  std::string head =
      encode_frame_head(with_verb(verb, std::move(fields)), body.size());  // before the body is moved away
  connection_->send(std::move(head), std::move(body));
}

void LinkPeer::call(const EncodedRequest& request, std::chrono::nanoseconds timeout, Done done) {
  if (Transport* other = loop_.transport())
    return call_over(*other, request.verb, nlohmann::json::parse(request.frame->substr(kFramePrefix)), {}, timeout,
                     std::move(done));
  if (expect(request.verb, timeout, std::move(done))) connection_->send(request.frame);
}

void LinkPeer::call_over(Transport& transport, std::string_view verb, nlohmann::json fields, std::string body,
                         std::chrono::nanoseconds timeout, Done done) {
  if (!carried_) carried_ = std::make_shared<std::uint64_t>(transport.connect(peer_));
  const std::uint64_t number = ++calls_;
  const Loop::TimerId timer = loop_.after(timeout, [this] { drop({ErrorCode::kTimeout, "no answer in time", true}); });
  pending_.push_back({std::move(done), timer, limits_of_(verb), number});
  transport.send(*carried_, peer_, verb, std::move(fields), std::move(body),
                 [this, carried = std::weak_ptr(carried_), number](Result<Answer> answer) {
                   if (carried.expired()) return;
                   const auto asked = std::ranges::find(pending_, number, &Pending::number);
                   if (asked == pending_.end()) return;
                   Pending answered = std::move(*asked);
                   pending_.erase(asked);
                   loop_.cancel(answered.timer);
                   answered.done(std::move(answer));
                 });
}

bool LinkPeer::expect(std::string_view verb, std::chrono::nanoseconds timeout, Done done) {
  Loop::TimerId timer = loop_.after(timeout, [this] { drop({ErrorCode::kTimeout, "no answer in time", true}); });
  pending_.push_back({std::move(done), timer, limits_of_(verb)});
  connect();
  return connection_ != nullptr;
}

void LinkPeer::drop(Error error) {
  carried_.reset();
  auto connection = std::exchange(connection_, nullptr);
  if (connection) connection->close();
  const Error with_peer = error.in(peer_.identity + " at " + peer_.address);
  Loop& loop = loop_;  // a callback may destroy this object
  for (Pending& pending : std::exchange(pending_, {})) {
    loop.cancel(pending.timer);
    pending.done(std::unexpected(with_peer));
  }
}

}  // namespace bsp::net
