// Sets TCP_NODELAY on every socket that a library of this program accepts or connects.
//
// PMIx writes a message in two pieces on a socket with Nagle's algorithm. With the peer's delayed acknowledgement,
// each close of a session then waits 40 ms. PMIx has no setting for it, so these two functions override the C
// library's. Link this file into the executable itself: the dynamic linker then uses its definitions for all
// libraries.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

void set_nodelay(int socket) {
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

extern "C" {

int accept(int listener, sockaddr* address, socklen_t* size) noexcept(false) {
  int socket = static_cast<int>(::syscall(SYS_accept4, listener, address, size, 0));
  if (socket >= 0) set_nodelay(socket);
  return socket;
}

int connect(int socket, const sockaddr* address, socklen_t size) noexcept(false) {
  if (address && (address->sa_family == AF_INET || address->sa_family == AF_INET6)) set_nodelay(socket);
  return static_cast<int>(::syscall(SYS_connect, socket, address, size));
}
}
