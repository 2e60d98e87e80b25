#include "base/net/tls_stream.h"

#include <poll.h>

#include "base/net/loop.h"
#include "base/net/wait.h"

namespace bsp::net {

Result<void> wait_for(int fd, TlsSocket::Wait wait, SteadyTime deadline) {
  while (true) {
    auto left = deadline - std::chrono::steady_clock::now();
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    if (ms <= 0) return fail(ErrorCode::kTimeout, "no answer in time", true);
    pollfd entry{
        .fd = fd, .events = static_cast<short>(wait == TlsSocket::Wait::kReadable ? POLLIN : POLLOUT), .revents = 0};
    int n = ::poll(&entry, 1, static_cast<int>(std::min<decltype(ms)>(ms, 60'000)));
    if (n > 0) return {};
    if (n < 0 && errno != EINTR) return fail_errno("poll");
  }
}

Result<std::size_t> TlsStream::read_some(std::span<std::byte> into, std::chrono::nanoseconds stall) {
  SteadyTime deadline = std::chrono::steady_clock::now() + stall;
  while (true) {
    BSP_TRY(TlsSocket::Progress progress, socket_.read(into));
    if (progress.end) return 0;
    std::size_t got = progress.bytes;
    // A read returns one record, 16 KiB; the same recv(2) may have fetched more.
    while (got > 0 && got < into.size() && socket_.has_pending()) {
      auto more = socket_.read(into.subspan(got));
      if (!more || more->bytes == 0) break;  // the next call reports it
      got += more->bytes;
    }
    if (got > 0) return got;
    BSP_CHECK_OK(wait_for(fd(), progress.wait, deadline));
  }
}

Result<void> TlsStream::write_all(std::span<const std::byte> from, std::chrono::nanoseconds stall) {
  SteadyTime deadline = std::chrono::steady_clock::now() + stall;
  while (!from.empty()) {
    BSP_TRY(TlsSocket::Progress progress, socket_.write(from));
    from = from.subspan(progress.bytes);
    if (progress.bytes > 0) {
      deadline = std::chrono::steady_clock::now() + stall;
      continue;
    }
    BSP_CHECK_OK(wait_for(fd(), progress.wait, deadline));
  }
  return {};
}

Result<void> TlsStream::end_write(std::chrono::nanoseconds stall) {
  SteadyTime deadline = std::chrono::steady_clock::now() + stall;
  while (true) {
    BSP_TRY(TlsSocket::Progress progress, socket_.close_write());
    if (progress.wait == TlsSocket::Wait::kDone) return {};
    BSP_CHECK_OK(wait_for(fd(), progress.wait, deadline));
  }
}

}  // namespace bsp::net
