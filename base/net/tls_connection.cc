#include "base/net/tls_connection.h"

#include <sys/epoll.h>

#include "base/net/address.h"

namespace bsp::net {
namespace {

constexpr std::chrono::seconds kHandshakeLimit{10};
constexpr std::chrono::seconds kStallLimit{20};
constexpr int kReadsPerTurn = 64;  // then it is the other connections' turn

}  // namespace

TlsConnection::TlsConnection(Loop& loop, TlsSocket socket, TlsRole role, Events events)
    : loop_(loop),
      socket_(std::move(socket)),
      events_(std::move(events)),
      phase_(role == TlsRole::kClient ? Phase::kConnecting : Phase::kHandshake) {}

TlsConnection::~TlsConnection() { close(); }

void TlsConnection::start() {
  auto weak = weak_from_this();
  loop_.watch(socket_.fd(), EPOLLOUT | EPOLLIN, [weak](Loop::Events events) {
    if (auto self = weak.lock()) self->ready(events);
  });
  stall_ = loop_.after(kHandshakeLimit, [weak] {
    if (auto self = weak.lock()) {
      self->stall_ = 0;
      self->fail_with({ErrorCode::kTimeout, "the handshake took too long", true});
    }
  });
}

void TlsConnection::send(std::string head, std::string body) {
  if (closed()) return;
  queue_.push_back(std::make_shared<const std::string>(std::move(head)));
  if (!body.empty()) queue_.push_back(std::make_shared<const std::string>(std::move(body)));
  if (phase_ == Phase::kOpen) pump();
}

void TlsConnection::send(std::shared_ptr<const std::string> frame) {
  if (closed()) return;
  queue_.push_back(std::move(frame));
  if (phase_ == Phase::kOpen) pump();
}

void TlsConnection::hold(bool held) {
  if (closed() || held_ == held) return;
  held_ = held;
  // Posted, because the caller may be inside a callback of pump().
  if (!held) {
    loop_.post([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->pump();
    });
  }
}

void TlsConnection::close() {
  if (closed()) return;
  phase_ = Phase::kClosed;
  loop_.cancel(std::exchange(stall_, 0));
  loop_.unwatch(socket_.fd());
  socket_ = TlsSocket();
  queue_.clear();
}

void TlsConnection::release(Released then) {
  if (closed()) return then(fail(ErrorCode::kUnavailable, "the connection is closed", true));
  release_ = std::move(then);
  if (queue_.empty()) finish_release();
}

void TlsConnection::finish_release() {
  auto self = shared_from_this();  // `closed` may drop the last reference
  Released then = std::exchange(release_, nullptr);
  if (reader_.partial()) {
    fail_with({ErrorCode::kRefused, "the peer sent a second request before the stream"});
    return then(fail(ErrorCode::kRefused, "the peer sent a second request before the stream"));
  }
  phase_ = Phase::kClosed;
  loop_.cancel(std::exchange(stall_, 0));
  loop_.unwatch(socket_.fd());
  TlsStream stream(std::move(socket_), identity_);
  if (events_.closed) events_.closed({ErrorCode::kUnavailable, "the connection was taken over"});
  then(std::move(stream));
}

void TlsConnection::fail_with(const Error& error) {
  if (closed()) return;
  auto self = shared_from_this();
  close();
  if (release_) std::exchange(release_, nullptr)(std::unexpected(error));
  if (events_.closed) events_.closed(error);
}

// A connection that is held reads nothing, so it doesn't come upon its end; but epoll reports one that is broken whatever
// is asked of it, again and again.
void TlsConnection::ready(Loop::Events events) {
  if (held_ && phase_ == Phase::kOpen && (events & (EPOLLERR | EPOLLHUP)) != 0)
    return fail_with({ErrorCode::kUnavailable, "the connection is broken", true});
  pump();
}

void TlsConnection::pump() {
  auto self = shared_from_this();
  progressed_ = false;
  auto opened = advance();
  if (!opened) return fail_with(opened.error());
  if (closed()) return;
  if (*opened) {
    if (auto written = write_queued(); !written) return fail_with(written.error());
    if (release_ && queue_.empty()) return finish_release();
    if (auto read = read_frames(); !read) return fail_with(read.error());
    if (closed()) return;
    restart_stall_timer();
  }
  update_interest();
}

Result<bool> TlsConnection::advance() {
  if (phase_ == Phase::kOpen) return true;
  if (phase_ == Phase::kClosed) return false;
  if (phase_ == Phase::kConnecting) {
    BSP_CHECK_OK(finish_connect(socket_.fd()));
    phase_ = Phase::kHandshake;
  }
  BSP_TRY(TlsSocket::Progress progress, socket_.handshake());
  wants_read_ = progress.wait == TlsSocket::Wait::kReadable;
  wants_write_ = progress.wait == TlsSocket::Wait::kWritable;
  if (progress.wait != TlsSocket::Wait::kDone) return false;
  wants_read_ = true;
  phase_ = Phase::kOpen;
  progressed_ = true;
  BSP_TRY(identity_, socket_.peer_identity());
  if (events_.ready) events_.ready(identity_);
  return true;
}

Result<void> TlsConnection::write_queued() {
  wants_write_ = false;
  while (!queue_.empty() && !closed()) {
    std::string_view left = std::string_view(*queue_.front()).substr(sent_of_front_);
    BSP_TRY(TlsSocket::Progress progress, socket_.write(std::as_bytes(std::span(left))));
    if (progress.wait != TlsSocket::Wait::kDone) {
      wants_write_ = true;
      return {};
    }
    progressed_ = true;
    sent_of_front_ += progress.bytes;
    if (sent_of_front_ == queue_.front()->size()) {
      queue_.pop_front();
      sent_of_front_ = 0;
    }
  }
  return {};
}

Result<void> TlsConnection::give_frames() {
  while (!held_ && !closed()) {
    reader_.expect(events_.limits());
    BSP_TRY(auto frame, reader_.next());
    if (!frame) return {};
    events_.frame(std::move(*frame));
  }
  return {};
}

Result<void> TlsConnection::read_frames() {
  BSP_CHECK_OK(give_frames());
  std::byte buffer[16 << 10];
  for (int turn = 0; !held_ && !closed(); ++turn) {
    if (turn == kReadsPerTurn) {
      repump_ = true;
      return {};
    }
    BSP_TRY(TlsSocket::Progress progress, socket_.read(buffer));
    if (progress.end) return fail(ErrorCode::kUnavailable, "the peer closed the connection", true);
    if (progress.wait != TlsSocket::Wait::kDone) return {};
    progressed_ = true;
    reader_.append(std::span(buffer, progress.bytes));
    BSP_CHECK_OK(give_frames());
  }
  return {};
}

void TlsConnection::restart_stall_timer() {
  bool needed = reader_.partial() ? !held_ : !queue_.empty();
  if (stall_ != 0 && needed && !progressed_) return;
  loop_.cancel(std::exchange(stall_, 0));
  if (!needed) return;
  stall_ = loop_.after(kStallLimit, [weak = weak_from_this()] {
    if (auto self = weak.lock()) {
      self->stall_ = 0;
      self->fail_with({ErrorCode::kTimeout, "the peer stalled in the middle of a message", true});
    }
  });
}

void TlsConnection::update_interest() {
  Loop::Events events = 0;
  if (wants_read_ && !(held_ && phase_ == Phase::kOpen)) events |= EPOLLIN;
  if (wants_write_) events |= EPOLLOUT;
  loop_.change(socket_.fd(), events);
  if (std::exchange(repump_, false))
    loop_.post([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->pump();
    });
}

}  // namespace bsp::net
