// A blocking byte stream over TLS: the form in which a connection carries a checkpoint.
//
// Timeouts limit silence, not the whole transfer: a call fails with kTimeout if nothing could be read or written for
// `stall`. A read fetches up to 128 KiB from the kernel at once and a write passes on all it is given, so use large
// pieces (≥ 64 KiB). One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include "base/net/tls.h"

namespace bsp::net {

class TlsStream {
 public:
  TlsStream(TlsSocket socket, std::string peer) : socket_(std::move(socket)), peer_(std::move(peer)) {}

  // At least one byte, or 0 if the peer has closed its side properly. A truncated connection is an error.
  Result<std::size_t> read_some(std::span<std::byte> into, std::chrono::nanoseconds stall);
  Result<void> write_all(std::span<const std::byte> from, std::chrono::nanoseconds stall);
  // Closes our side: the peer's reads then return 0. We can still read.
  Result<void> end_write(std::chrono::nanoseconds stall);

  [[nodiscard]] const std::string& peer() const { return peer_; }
  // ::shutdown(fd(), SHUT_RDWR) interrupts a blocked call from another thread.
  [[nodiscard]] int fd() const { return socket_.fd(); }

 private:
  TlsSocket socket_;
  std::string peer_;
};

}  // namespace bsp::net
