#include "sidecar/agent/liveness.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

#include "base/net/address.h"

namespace bsp::sidecar {
namespace {

// Anyone who can reach the port can open idle connections; beyond this number the oldest is closed.
constexpr std::size_t kMaxConnections = 16;
constexpr std::string_view kHttpResponse =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

}  // namespace

Result<std::unique_ptr<Liveness>> Liveness::listen(net::Loop& loop, const std::string& address) {
  BSP_TRY(net::Address parsed, net::parse_address(address));
  BSP_TRY(Fd listener, net::listen_on(parsed));
  return std::unique_ptr<Liveness>(new Liveness(loop, std::move(listener)));
}

Liveness::Liveness(net::Loop& loop, Fd listener) : loop_(loop), listener_(std::move(listener)) {
  loop_.watch(listener_.get(), EPOLLIN, [this](net::Loop::Events) { accept_one(); });
}

Liveness::~Liveness() {
  loop_.unwatch(listener_.get());
  for (const Fd& socket : asking_) loop_.unwatch(socket.get());
}

std::uint16_t Liveness::port() const { return net::local_port(listener_.get()); }

void Liveness::accept_one() {
  Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  if (asking_.size() == kMaxConnections) forget(asking_.front().get());
  loop_.watch(socket.get(), EPOLLIN, [this, fd = socket.get()](net::Loop::Events) { answer(fd); });
  asking_.push_back(std::move(socket));
}

void Liveness::answer(int socket) {
  // Read the request, or close() would send a reset, which may overtake the answer.
  char request[4096];
  const ssize_t n = ::recv(socket, request, sizeof request, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) (void)::send(socket, kHttpResponse.data(), kHttpResponse.size(), MSG_NOSIGNAL);
  forget(socket);
}

void Liveness::forget(int socket) {
  loop_.unwatch(socket);
  std::erase_if(asking_, [&](const Fd& fd) { return fd.get() == socket; });
}

}  // namespace bsp::sidecar
