// Sees sockets being made: those of the MPI library get TCP_NODELAY, those of the program are noted.
//
// PMIx writes its last message in two pieces, and without TCP_NODELAY Nagle's algorithm and the other
// side's delayed acknowledgement make the close of an epoch wait 40 ms.
#include "sidecar/shim/sockets.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace bsp::shim {
namespace {

constexpr int kMaxDescriptors = 65536;
std::atomic<std::uint8_t> of_program[kMaxDescriptors];

// True if `code` lies in one of the libraries that Open MPI is made of.
bool is_mpi_code(const void* code) {
  Dl_info info;
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* slash = std::strrchr(info.dli_fname, '/');
  const char* name = slash != nullptr ? slash + 1 : info.dli_fname;
  for (const char* prefix : {"libmpi.", "libopen-", "libpmix.", "libprrte.", "mca_", "pmix_mca_"})
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return true;
  return false;
}

int note(int fd, const void* caller) {
  if (fd >= 0 && fd < kMaxDescriptors) of_program[fd].store(is_mpi_code(caller) ? 0 : 1, std::memory_order_relaxed);
  return fd;
}

void set_nodelay(int fd) {
  if (fd < 0 || is_program_socket(fd)) return;
  const int error = errno;
  const int one = 1;  // fails on other kinds of sockets, which is as well
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  errno = error;
}

}  // namespace

bool is_program_socket(int fd) {
  return fd >= 0 && fd < kMaxDescriptors && of_program[fd].load(std::memory_order_relaxed) != 0;
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

#define BSP_EXPORT __attribute__((visibility("default")))
#define BSP_NEXT(name) reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name))

extern "C" {

BSP_EXPORT int socket(int domain, int type, int protocol) noexcept {
  static const auto next = BSP_NEXT(socket);
  return note(next(domain, type, protocol), __builtin_return_address(0));
}

BSP_EXPORT int socketpair(int domain, int type, int protocol, int fds[2]) noexcept {
  static const auto next = BSP_NEXT(socketpair);
  const int rc = next(domain, type, protocol, fds);
  if (rc == 0) {
    note(fds[0], __builtin_return_address(0));
    note(fds[1], __builtin_return_address(0));
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
  const int made = note(next(fd, address, length), __builtin_return_address(0));
  set_nodelay(made);
  return made;
}

BSP_EXPORT int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  static const auto next = BSP_NEXT(accept4);
  const int made = note(next(fd, address, length, flags), __builtin_return_address(0));
  set_nodelay(made);
  return made;
}

}  // extern "C"
