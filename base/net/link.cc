// The blocking client.
#include "base/net/link.h"

#include "base/net/address.h"
#include "base/net/wait.h"

namespace bsp::net {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Result<TlsStream> open_stream(const TlsContext& context, const Peer& peer, SteadyTime deadline) {
  BSP_TRY(Address address, parse_address(peer.address));
  BSP_TRY(Fd socket, start_connect(address));
  BSP_CHECK_OK(wait_for(socket.get(), TlsSocket::Wait::kWritable, deadline));
  BSP_CHECK_OK(finish_connect(socket.get()));
  TlsSocket tls(context, std::move(socket), TlsRole::kClient);
  while (true) {
    BSP_TRY(TlsSocket::Progress progress, tls.handshake());
    if (progress.wait == TlsSocket::Wait::kDone) break;
    BSP_CHECK_OK(wait_for(tls.fd(), progress.wait, deadline));
  }
  BSP_TRY(std::string identity, tls.peer_identity());
  if (identity != peer.identity)
    return fail(ErrorCode::kRefused, std::format("the peer is \"{}\", not \"{}\"", identity, peer.identity));
  return TlsStream(std::move(tls), std::move(identity));
}

}  // namespace

Result<void> Link::connect(std::chrono::nanoseconds timeout) {
  if (stream_) return {};
  auto stream = open_stream(context_, peer_, std::chrono::steady_clock::now() + timeout);
  if (!stream) return std::unexpected(stream.error().in(peer_.identity + " at " + peer_.address));
  stream_ = std::move(*stream);
  reader_ = FrameReader();
  return {};
}

Result<Answer> Link::exchange(std::string_view head, std::string_view body, SteadyTime deadline) {
  auto left = [&] { return deadline - std::chrono::steady_clock::now(); };
  BSP_CHECK_OK(stream_->write_all(bytes_of(head), left()));
  BSP_CHECK_OK(stream_->write_all(bytes_of(body), left()));
  std::byte buffer[16 << 10];
  while (true) {
    BSP_TRY(auto frame, reader_.next());
    if (frame) return std::move(*frame);
    BSP_TRY(std::size_t got, stream_->read_some(buffer, left()));
    if (got == 0) return fail(ErrorCode::kUnavailable, "the peer closed the connection", true);
    reader_.append(std::span(buffer, got));
  }
}

Result<Answer> Link::call(std::string_view verb, nlohmann::json fields, std::chrono::nanoseconds timeout,
                          std::string_view body) {
  SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
  auto context = [&] { return std::format("{} ({}) {}", peer_.identity, peer_.address, verb); };
  if (!fields.is_object()) fields = nlohmann::json::object();
  fields["verb"] = verb;
  std::string head = encode_frame_head(fields, body.size());
  bool kept = stream_.has_value();
  while (true) {
    BSP_CHECK_OK(connect(deadline - std::chrono::steady_clock::now()));
    auto frame = exchange(head, body, deadline);
    if (frame) {
      auto answer = as_answer(std::move(*frame));
      if (!answer) return std::unexpected(answer.error().in(context()));
      return answer;
    }
    stream_.reset();
    // Only an idle connection can have died unnoticed. If a new one fails, a retry won't help.
    if (!std::exchange(kept, false) || frame.error().code == ErrorCode::kTimeout)
      return std::unexpected(frame.error().in(context()));
  }
}

Result<TlsStream> Link::take_over() {
  if (!stream_) return fail(ErrorCode::kUnavailable, "the connection is closed", true);
  if (reader_.partial())
    return fail(ErrorCode::kRefused, "the peer sent data after agreeing to hand over the connection");
  TlsStream stream = std::move(*stream_);
  stream_.reset();
  return stream;
}

}  // namespace bsp::net
