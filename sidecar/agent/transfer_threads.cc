#include "sidecar/agent/transfer_threads.h"

#include <poll.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "base/core/fault.h"
#include "base/core/realtime.h"
#include "crds/requests.h"

namespace bsp::sidecar {
namespace {

// A stream without progress for this long is given up; a dump's first bytes may take a while on a throttled CPU.
constexpr std::chrono::seconds kStall{10};
constexpr std::chrono::seconds kConnect{5};
constexpr std::chrono::seconds kVerdict{30};
constexpr std::chrono::seconds kDrain{5};
constexpr std::size_t kPiece = 256 << 10;
constexpr std::size_t kMidStreamBytes = 64 << 10;  // where a fault point hits the middle of a stream

bool readable(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

Result<net::Answer> read_verdict(net::TlsStream& stream) {
  net::FrameReader reader(MessageLimits{});
  std::byte buffer[4096];
  while (true) {
    BSP_TRY(auto frame, reader.next());
    if (frame) return net::as_answer(std::move(*frame));
    BSP_TRY(std::size_t got, stream.read_some(buffer, kVerdict));
    if (got == 0) return fail(ErrorCode::kUnavailable, "the target closed the stream without a verdict", true);
    reader.append(std::span(buffer, got));
  }
}

Result<void> write_verdict(net::TlsStream& stream, const nlohmann::json& verdict) {
  std::string frame = net::encode_frame_head(verdict, 0);
  return stream.write_all(std::as_bytes(std::span(frame)), kStall);
}

// Registers the stream with its interrupter for as long as it exists.
class Registered {
 public:
  Registered(Interrupter& interrupter, net::TlsStream stream) : interrupter_(interrupter), stream_(std::move(stream)) {
    interrupter_.set(stream_.fd());
  }
  ~Registered() { interrupter_.set(-1); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  net::TlsStream& operator*() { return stream_; }

 private:
  Interrupter& interrupter_;
  net::TlsStream stream_;
};

}  // namespace

void Interrupter::set(int fd) {
  std::scoped_lock lock(mutex_);
  fd_ = fd;
  if (interrupted_ && fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

void Interrupter::interrupt() {
  std::scoped_lock lock(mutex_);
  interrupted_ = true;
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

bool Interrupter::interrupted() {
  std::scoped_lock lock(mutex_);
  return interrupted_;
}

std::future<std::unique_ptr<net::Link>> open_link(const net::TlsContext& context, const net::Peer& target) {
  std::promise<std::unique_ptr<net::Link>> promise;
  auto future = promise.get_future();
  // It shares only the context's reference count, ends by itself, and must not be waited for.
  std::thread([promise = std::move(promise), link = std::make_unique<net::Link>(context, target)]() mutable {
    (void)link->connect(kConnect);
    promise.set_value(std::move(link));
  }).detach();
  return future;
}

Result<StreamEnd> run_outgoing(Outgoing& outgoing, const net::TlsContext& context, const net::Peer& target,
                               const std::function<void()>& connected) {
  auto link = outgoing.link.valid() ? outgoing.link.get() : std::make_unique<net::Link>(context, target);
  auto accepted = link->call(wire::kCheckpoint, reflect::write(wire::MigrationRequest{outgoing.migration}), kConnect);
  if (!accepted) return std::unexpected(accepted.error());
  BSP_TRY(net::TlsStream taken, link->take_over());
  Registered stream(outgoing.interrupter, std::move(taken));
  fault_point("transfer.sending");
  connected();
  std::size_t sent = 0;
  auto sink = [&](std::span<const std::byte> piece) -> Result<void> {
    // The target sends only one message, and while this side is still sending that can only be a refusal.
    if (readable((*stream).fd())) {
      BSP_TRY(net::Answer verdict, read_verdict(*stream));
      return fail(ErrorCode::kRefused, "the target ended the stream early");
    }
    BSP_CHECK_OK((*stream).write_all(piece, kStall));
    std::size_t before = std::exchange(sent, sent + piece.size());
    if (before < kMidStreamBytes && sent >= kMidStreamBytes) fault_point("transfer.streaming");
    return {};
  };
  BSP_TRY(transfer::Totals totals, outgoing.capture->run(sink));
  fault_point("transfer.sent");
  BSP_TRY(net::Answer verdict, read_verdict(*stream));
  return StreamEnd{totals.files, totals.bytes, totals.first_byte_ns ? realtime_ns() - totals.first_byte_ns : 0};
}

Result<StreamEnd> run_incoming(Incoming& incoming, net::TlsStream taken) {
  Registered stream(incoming.interrupter, std::move(taken));
  fault_point("transfer.receiving");
  auto receive_all = [&]() -> Result<void> {
    std::vector<std::byte> buffer(kPiece);
    while (true) {
      BSP_TRY(std::size_t got, (*stream).read_some(buffer, kStall));
      if (got == 0) return fail(ErrorCode::kUnavailable, "the source closed the stream too early", true);
      BSP_TRY(bool whole, incoming.receiver->feed(std::span(buffer).first(got)));
      if (whole) return {};
    }
  };
  if (auto received = receive_all(); !received) {
    // Both ends report it, in any order.
    if (received.error().code == ErrorCode::kNoSpace)
      received.error().message += "; raise spec.checkpoint.sizeLimit, the most that a pod can receive";
    // The verdict must reach a source that is still writing: closing at once would reset the connection and lose what
    // is in flight.
    (void)write_verdict(*stream, net::error_header(received.error()));
    (void)(*stream).end_write(kStall);
    std::byte sunk[16 << 10];
    auto until = std::chrono::steady_clock::now() + kDrain;
    while (std::chrono::steady_clock::now() < until) {
      auto got = (*stream).read_some(sunk, kDrain);
      if (!got || *got == 0) break;
    }
    return std::unexpected(received.error());
  }
  transfer::Totals totals = incoming.receiver->totals();
  std::uint64_t took = totals.first_byte_ns ? realtime_ns() - totals.first_byte_ns : 0;
  fault_point("transfer.received");
  // Without this verdict the source reports failure and the copy is discarded.
  BSP_CHECK_OK(write_verdict(*stream, {{"ok", true}, {"files", totals.files}, {"bytes", totals.bytes}}));
  return StreamEnd{totals.files, totals.bytes, took};
}

}  // namespace bsp::sidecar
