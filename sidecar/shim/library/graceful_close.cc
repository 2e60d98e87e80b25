#include "sidecar/shim/library/graceful_close.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>
#include <vector>

#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/loaded_library.h"
#include "sidecar/shim/process/nanoseconds.h"

namespace bsp::shim {
namespace {

// How long to wait for a peer that has neither closed nor exited: its node is gone, and its data isn't needed.
constexpr std::uint64_t kMaxPeerWaitNs = 20'000'000'000;

// OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT of Open MPI 5; from this state on, ob1 ignores link errors.
constexpr int kPastCommSelfDestruct = 4;

int* mpi_state() {
  static auto* const found = static_cast<int*>(find_in_mpi("ompi_mpi_state"));
  return found;
}

int state_before = 0;

std::atomic<bool> closing_links{false};
std::vector<int> half_closed;  // accessed only by the closing thread

// Message transport and PMIx both use sockets; only the caller's address distinguishes them. PMIx's peer, the
// sidecar, stays.
bool is_transport_code(const void* code) {
  const std::string_view name = file_name_of(code);
  return name.starts_with("libopen-pal.") || name.starts_with("mca_btl_");
}

// Discards unread data. True once the peer has closed or is gone.
bool has_closed(int fd) {
  char unwanted[4096];
  for (;;) {
    const ssize_t n = ::recv(fd, unwanted, sizeof unwanted, MSG_DONTWAIT);
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }
}

// One that listens has none: half-closing it is no error, and nothing would ever come.
bool has_peer(int fd) {
  sockaddr_storage peer{};
  socklen_t bytes = sizeof peer;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0;
}

}  // namespace

void ignore_link_errors() {
  if (mpi_state() == nullptr || *mpi_state() == kPastCommSelfDestruct) return;
  state_before = *mpi_state();
  *mpi_state() = kPastCommSelfDestruct;
}

void stop_ignoring_link_errors() {
  if (mpi_state() != nullptr && *mpi_state() == kPastCommSelfDestruct) *mpi_state() = state_before;
}

GracefulClose::GracefulClose() { closing_links.store(true); }

GracefulClose::~GracefulClose() {
  closing_links.store(false);
  const std::uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + kMaxPeerWaitNs;
  while (!half_closed.empty() && clock_ns(CLOCK_MONOTONIC) < deadline) {
    std::vector<pollfd> waiting;
    for (int fd : half_closed) waiting.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    ::poll(waiting.data(), waiting.size(), 100);
    std::erase_if(half_closed, [](int fd) { return has_closed(fd) && ::close(fd) == 0; });
  }
  for (int fd : half_closed) ::close(fd);
  half_closed.clear();
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

extern "C" {

// btl/tcp closes with shutdown(SHUT_RDWR) and close().
BSP_EXPORT int shutdown(int fd, int how) noexcept {
  static const auto next = BSP_NEXT(shutdown);
  if (!closing_links.load(std::memory_order_relaxed) || how != SHUT_RDWR ||
      !is_transport_code(__builtin_return_address(0)) || !has_peer(fd))
    return next(fd, how);
  const int kept = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (kept < 0) return next(fd, how);
  const int rc = next(fd, SHUT_WR);
  if (rc == 0)
    half_closed.push_back(kept);
  else
    ::close(kept);  // its peer has reset it
  return rc;
}

// btl/tcp sends FIN without MSG_NOSIGNAL. A peer that is gone doesn't need it.
BSP_EXPORT ssize_t send(int fd, const void* bytes, size_t length, int flags) {
  static const auto next = BSP_NEXT(send);
  if (!closing_links.load(std::memory_order_relaxed) || !is_transport_code(__builtin_return_address(0)))
    return next(fd, bytes, length, flags);
  const ssize_t n = next(fd, bytes, length, flags | MSG_NOSIGNAL);
  return n < 0 && (errno == EPIPE || errno == ECONNRESET) ? static_cast<ssize_t>(length) : n;
}

}  // extern "C"
