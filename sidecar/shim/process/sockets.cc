// Intercepts socket creation: records the owner and sets TCP_NODELAY on MPI's sockets.
//
// PMIx writes its last message in two pieces. Without TCP_NODELAY, Nagle's algorithm and the peer's delayed
// acknowledgement make the close of an epoch wait 40 ms.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "sidecar/shim/process/descriptors.h"
#include "sidecar/shim/process/export.h"

namespace bsp::shim {
namespace {

void set_nodelay(int fd) {
  if (fd < 0 || owner_of(fd) != Owner::kMpi) return;
  const int error = errno;
  const int one = 1;  // fails harmlessly on other kinds of sockets
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  errno = error;
}

}  // namespace
}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

extern "C" {

BSP_EXPORT int socket(int domain, int type, int protocol) noexcept {
  static const auto next = BSP_NEXT(socket);
  return note_chosen(next(domain, type, protocol));
}

BSP_EXPORT int socketpair(int domain, int type, int protocol, int fds[2]) noexcept {
  static const auto next = BSP_NEXT(socketpair);
  const int rc = next(domain, type, protocol, fds);
  if (rc == 0) {
    fds[0] = note_chosen(fds[0]);
    fds[1] = note_chosen(fds[1]);
  }
  return rc;
}

BSP_EXPORT int connect(int fd, const sockaddr* address, socklen_t length) {
  static const auto next = BSP_NEXT(connect);
  if (address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6)) set_nodelay(fd);
  return next(fd, address, length);
}

BSP_EXPORT int accept(int fd, sockaddr* address, socklen_t* length) {
  static const auto next = BSP_NEXT(accept);
  const int made = note_chosen(next(fd, address, length));
  set_nodelay(made);
  return made;
}

BSP_EXPORT int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  static const auto next = BSP_NEXT(accept4);
  const int made = note_chosen(next(fd, address, length, flags));
  set_nodelay(made);
  return made;
}

}  // extern "C"
