#include "operator/controller/client_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <span>

namespace bsp::controller {
namespace {

using State = ClientStream::State;

State state_of(net::TlsSocket::Wait wait) {
  switch (wait) {
    case net::TlsSocket::Wait::kDone:
      return State::kGoesOn;
    case net::TlsSocket::Wait::kReadable:
      return State::kReadable;
    case net::TlsSocket::Wait::kWritable:
      return State::kWritable;
  }
  return State::kEnded;
}

// The state after a call of a plain socket has failed.
State state_of_errno(State once_ready) {
  if (errno == EINTR) return State::kGoesOn;
  return errno == EAGAIN || errno == EWOULDBLOCK ? once_ready : State::kEnded;
}

}  // namespace

ClientStream::ClientStream(Fd socket, const std::optional<net::TlsContext>& tls) : open_(!tls) {
  if (tls)
    tls_.emplace(*tls, std::move(socket), net::TlsRole::kServerOfAnyone);
  else
    plain_ = std::move(socket);
}

State ClientStream::shake_hands() {
  const auto shaken = tls_->handshake();
  if (!shaken || shaken->end) return State::kEnded;
  open_ = shaken->wait == net::TlsSocket::Wait::kDone;
  return state_of(shaken->wait);
}

State ClientStream::read(std::string& into) {
  char buffer[4096];
  if (!open_) return shake_hands();
  if (tls_) {
    const auto got = tls_->read(std::as_writable_bytes(std::span(buffer)));
    if (!got || got->end) return State::kEnded;
    into.append(buffer, got->bytes);
    return state_of(got->wait);
  }
  const ssize_t n = ::recv(plain_.get(), buffer, sizeof buffer, 0);
  if (n < 0) return state_of_errno(State::kReadable);
  if (n == 0) return State::kEnded;
  into.append(buffer, static_cast<std::size_t>(n));
  return State::kGoesOn;
}

State ClientStream::write(std::string& from) {
  if (tls_) {
    const auto sent = tls_->write(std::as_bytes(std::span(from)));
    if (!sent) return State::kEnded;
    from.erase(0, sent->bytes);
    return state_of(sent->wait);
  }
  const ssize_t n = ::send(plain_.get(), from.data(), from.size(), MSG_NOSIGNAL);
  if (n < 0) return state_of_errno(State::kWritable);
  from.erase(0, static_cast<std::size_t>(n));
  return State::kGoesOn;
}

bool ClientStream::end_write() {
  if (tls_ && !tls_->close_write()) return false;
  return ::shutdown(fd(), SHUT_WR) == 0;
}

}  // namespace bsp::controller
