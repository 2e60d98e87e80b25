// TLS 1.3 with certificates on both ends, as a non-blocking socket.
//
// The blocking stream (tls_stream.h) and the event loop's connections (tls_connection.h) use TlsSocket.
// The peer's identity is the CN of its certificate, which the handshake verifies against the job's CA
// (chain, validity, purpose).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/core/error.h"
#include "base/core/fd.h"

struct ssl_st;

namespace bsp::net {

struct TlsOutput;

struct Credentials {
  std::string ca;           // PEM: the CA we trust
  std::string certificate;  // PEM: our own
  std::string key;          // PEM
  bool operator==(const Credentials&) const = default;
};

// Reads ca.pem, cert.pem and key.pem from a directory.
Result<Credentials> load_credentials(const std::string& directory);

struct SslFree {
  void operator()(ssl_st* ssl) const;
};
using Ssl = std::unique_ptr<ssl_st, SslFree>;

// Parsed credentials; cheap to copy, usable from any thread and for both roles. All contexts share one SSL_CTX: one for
// each would take 25 KiB, and an operator has credentials for every job.
class TlsContext {
 public:
  static Result<TlsContext> create(const Credentials& credentials);
  // For credentials that this process has created and that must therefore be valid: the first connection parses them.
  // Until then only the text is kept, which takes a fifth of the memory.
  static TlsContext create_late(Credentials credentials);
  // From now on, new connections of this context and all its copies use these. Open connections stay. Unusable
  // credentials change nothing.
  Result<void> renew(const Credentials& credentials);
  [[nodiscard]] Result<Ssl> new_connection() const;

 private:
  struct Parsed;
  struct Held;
  std::shared_ptr<Held> held_;
};

// kServerOfAnyone asks its clients for no certificate: they know whom they talk to, and it does not.
enum class TlsRole { kClient, kServer, kServerOfAnyone };

class TlsSocket {
 public:
  // What the operation waits for; kDone if it is complete.
  enum class Wait { kDone, kReadable, kWritable };
  struct Progress {
    std::size_t bytes = 0;
    Wait wait = Wait::kDone;
    bool end = false;  // of the peer's data
  };

  TlsSocket() = default;
  // Takes a connected (or connecting) non-blocking socket. The first handshake() creates OpenSSL's state, so a socket
  // that never connects costs little more than its descriptor.
  TlsSocket(TlsContext context, Fd socket, TlsRole role);

  Result<Progress> handshake();
  Result<Progress> read(std::span<std::byte> into);  // at least one byte, or wait, or end
  // May write fewer bytes than asked. After a wait, call again with the same bytes, optionally with more behind them.
  Result<Progress> write(std::span<const std::byte> from);
  Result<Progress> close_write();  // sends close_notify

  [[nodiscard]] int fd() const { return socket_.get(); }
  // Whether OpenSSL holds received bytes that poll() doesn't know of.
  [[nodiscard]] bool has_pending() const;
  // CN of the peer's certificate; call it after the handshake.
  [[nodiscard]] Result<std::string> peer_identity() const;

 private:
  struct OutputDeleter {
    void operator()(TlsOutput* output) const;
  };
  Result<void> begin();
  Result<Progress> outcome(int returned, const char* what);
  [[nodiscard]] Error rejection_or(Error otherwise);

  TlsContext context_;
  TlsRole role_ = TlsRole::kClient;
  Fd socket_;
  std::unique_ptr<TlsOutput, OutputDeleter> output_;  // outlives ssl_, which writes to it
  Ssl ssl_;
};

}  // namespace bsp::net
