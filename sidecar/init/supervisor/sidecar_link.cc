#include "sidecar/init/supervisor/sidecar_link.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace bsp::init {

bool SidecarLink::connect_if_due(const User& program) {
  if (socket_ || Steady::now() < next_) return false;
  // Frequently at the beginning, because both containers start together, then less often.
  next_ = Steady::now() + std::chrono::milliseconds(failures_++ < 250 ? 20 : 200);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return false;
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return false;
  // A program that runs as root can't be distinguished from a sidecar that does.
  ucred listener{};
  socklen_t size = sizeof listener;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &listener, &size) != 0) return false;
  if (listener.uid == program.uid && listener.uid != ::geteuid()) return false;
  socket_ = std::move(socket);
  failures_ = 0;
  return true;
}

void SidecarLink::send(const control::FromInit& message) {
  if (socket_ && !control::send(socket_.get(), control::packet_of(message))) lost();
}

void SidecarLink::receive(const std::function<void(const control::ToInit&)>& handle) {
  while (socket_) {
    const auto packet = control::receive(socket_.get());
    if (packet) {
      if (const auto message = control::to_init(*packet)) handle(*message);
    } else if (packet.error().code == ErrorCode::kTimeout) {
      return;
    } else if (packet.error().code == ErrorCode::kUnavailable) {
      lost();
    }
    // kInvalid: ignores an unreadable packet; the next one may be valid.
  }
}

void SidecarLink::lost() {
  socket_.reset();
  next_ = Steady::now();
}

}  // namespace bsp::init
