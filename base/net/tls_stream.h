// A blocking byte stream over TLS: what a connection becomes when it carries a checkpoint.
//
// Limits are for silence, not for the whole transfer: a call fails with kTimeout when nothing could
// be read or written for `stall`. Reads take 128 KiB from the kernel at once and writes hand over as
// much as they are given, so pass large pieces (≥ 64 KiB). Usable by one thread at a time.
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

  // Some bytes (0: the peer has ended its side properly; a connection cut short is an error).
  Result<std::size_t> read_some(std::span<std::byte> into, std::chrono::nanoseconds stall);
  // Exactly `into.size()` bytes.
  Result<void> read_exactly(std::span<std::byte> into, std::chrono::nanoseconds stall);
  Result<void> write_all(std::span<const std::byte> from, std::chrono::nanoseconds stall);
  // Ends our side; the peer's reads then return 0. Reading stays possible.
  Result<void> end_write(std::chrono::nanoseconds stall);

  [[nodiscard]] const std::string& peer() const { return peer_; }
  // For whoever must interrupt a blocked call from another thread: ::shutdown(fd(), SHUT_RDWR).
  [[nodiscard]] int fd() const { return socket_.fd(); }

 private:
  TlsSocket socket_;
  std::string peer_;
};

}  // namespace bsp::net
