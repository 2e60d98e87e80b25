#include "sidecar/agent/control_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/core/log.h"

namespace bsp::sidecar {

namespace {
constexpr int kMaxMessagesPerWake = 64;
}

Result<std::unique_ptr<ControlServer>> ControlServer::listen(net::Loop& loop, const std::string& path, Events events) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ErrorCode::kInvalid, std::format("{} is too long for a socket path", path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return fail_errno("socket");
  ::unlink(path.c_str());
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(listener.get(), 4) != 0)
    return fail_errno("listening on " + path);
  return std::unique_ptr<ControlServer>(new ControlServer(loop, path, std::move(listener), std::move(events)));
}

ControlServer::ControlServer(net::Loop& loop, std::string path, Fd listener, Events events)
    : loop_(loop), path_(std::move(path)), listener_(std::move(listener)), events_(std::move(events)) {
  loop_.watch(listener_.get(), EPOLLIN, [this](net::Loop::Events) { accept_one(); });
}

ControlServer::~ControlServer() {
  loop_.unwatch(listener_.get());
  if (connection_) loop_.unwatch(connection_.get());
}

void ControlServer::accept_one() {
  Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      (peer.uid != 0 && peer.uid != ::geteuid())) {
    log_warning("refused a control connection from another user", {{"uid", peer.uid}});
    return;
  }
  // A new bsp-init (or the same one, reconnecting) replaces the previous connection.
  drop();
  connection_ = std::move(socket);
  loop_.watch(connection_.get(), EPOLLIN, [this](net::Loop::Events) { read_messages(); });
}

// Bounded, so that a sender that never stops can't starve the rest of the loop. Remaining messages wake it again.
void ControlServer::read_messages() {
  for (int n = 0; connection_ && n < kMaxMessagesPerWake; ++n) {
    const auto packet = control::receive(connection_.get());
    if (packet) {
      if (const auto message = control::from_init(*packet)) events_.message(*message);
      continue;
    }
    if (packet.error().code == ErrorCode::kTimeout) return;
    if (packet.error().code == ErrorCode::kInvalid) {
      log_warning("cannot parse a message from bsp-init", {{"reason", packet.error().message}});
      continue;
    }
    return drop();
  }
}

void ControlServer::drop() {
  if (!connection_) return;
  loop_.unwatch(connection_.get());
  connection_.reset();
  events_.lost();
}

Result<void> ControlServer::send(const control::ToInit& message) {
  if (!connection_) return fail(ErrorCode::kUnavailable, "bsp-init is not connected", true);
  return control::send(connection_.get(), control::packet_of(message));
}

}  // namespace bsp::sidecar
