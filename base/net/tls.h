// TLS 1.3 with certificates on both ends, as a non-blocking socket.
//
// TlsSocket is what the blocking stream (tls_stream.h) and the event loop's connections
// (tls_connection.h) stand on. Who the peer is: the CN of the certificate it has shown, which was
// verified against the job's CA (chain, validity, purpose) before the handshake ended.
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
  std::string ca;           // PEM: whose certificates we believe
  std::string certificate;  // PEM: ours
  std::string key;          // PEM
  bool operator==(const Credentials&) const = default;
};

// Reads ca.pem, cert.pem and key.pem from a directory.
Result<Credentials> load_credentials(const std::string& directory);

struct SslFree {
  void operator()(ssl_st* ssl) const;
};
using Ssl = std::unique_ptr<ssl_st, SslFree>;

// Parsed credentials; cheap to copy, usable from all threads, for both roles. How connections are made is the same for all
// of a process: an SSL_CTX of its own would take 25 KiB, and an operator has credentials for every job.
class TlsContext {
 public:
  static Result<TlsContext> create(const Credentials& credentials);
  // The same for credentials that this process has made itself, so that nothing can be wrong with them: they are parsed with the
  // first connection. Until then only their text is kept, a fifth of what OpenSSL makes of it.
  static TlsContext create_late(Credentials credentials);
  // New connections of this context and of all its copies have these from now on; those that are open stay. What can't be
  // used changes nothing.
  Result<void> renew(const Credentials& credentials);
  [[nodiscard]] Result<Ssl> new_connection() const;

 private:
  struct Parsed;
  struct Held;
  std::shared_ptr<Held> held_;
};

enum class TlsRole { kClient, kServer };

class TlsSocket {
 public:
  // What the operation waits for; kDone: it is complete.
  enum class Wait { kDone, kReadable, kWritable };
  struct Progress {
    std::size_t bytes = 0;
    Wait wait = Wait::kDone;
    bool end = false;  // of the peer's data
  };

  TlsSocket() = default;
  // Takes a connected (or connecting) non-blocking socket. One that never connects costs little more than its descriptor:
  // OpenSSL comes in with the first handshake().
  TlsSocket(TlsContext context, Fd socket, TlsRole role);

  Result<Progress> handshake();
  Result<Progress> read(std::span<std::byte> into);  // at least one byte, or wait, or end
  // Maybe fewer bytes than asked. After a wait it has to be called again with the same bytes, or more behind them.
  Result<Progress> write(std::span<const std::byte> from);
  Result<Progress> close_write();  // sends close_notify

  [[nodiscard]] int fd() const { return socket_.get(); }
  // Bytes already decrypted that poll() knows nothing of.
  [[nodiscard]] bool has_pending() const;
  // CN of the peer's certificate; only after the handshake.
  [[nodiscard]] Result<std::string> peer_identity() const;

 private:
  struct OutputDeleter {
    void operator()(TlsOutput* output) const;
  };
  Result<void> begin();
  Result<Progress> outcome(int returned, const char* what);
  [[nodiscard]] Error last_words(Error otherwise);

  TlsContext context_;
  TlsRole role_ = TlsRole::kClient;
  Fd socket_;
  std::unique_ptr<TlsOutput, OutputDeleter> output_;  // outlives ssl_, which writes to it
  Ssl ssl_;
};

}  // namespace bsp::net
