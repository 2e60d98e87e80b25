#include "base/net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/core/read_file.h"
#include "base/net/owned.h"

namespace bsp::net {

// What the BIO writes to: the socket or, during TlsSocket::write(), a buffer in front of it.
struct TlsOutput {
  int fd = -1;
  bool collecting = false;
  std::vector<char> bytes{};  // encrypted
  std::size_t sent = 0;       // how many of them are sent
  std::size_t consumed = 0;   // the caller's plain bytes in them, not reported yet

  [[nodiscard]] bool sent_all() const { return sent == bytes.size(); }
};

namespace {

constexpr std::size_t kBatchBytes = 128 << 10;

// Our own socket BIO, because OpenSSL's writes without MSG_NOSIGNAL: a disconnected peer would raise SIGPIPE, and every
// program we start would inherit an ignored SIGPIPE.
int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  TlsOutput& output = *static_cast<TlsOutput*>(BIO_get_data(bio));
  if (output.collecting || !output.sent_all()) {  // behind the bytes that are still waiting
    output.bytes.insert(output.bytes.end(), data, data + size);
    return size;
  }
  ssize_t n = ::send(output.fd, data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int bio_read(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  const int fd = static_cast<TlsOutput*>(BIO_get_data(bio))->fd;
  ssize_t n = ::recv(fd, into, static_cast<std::size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(n);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
  return 0;
}

BIO* make_bio(TlsOutput* output) {
  static BIO_METHOD* method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bsp socket");
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_ctrl(m, bio_control);
    return m;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, output);
  BIO_set_init(bio, 1);
  return bio;
}

// The newest OpenSSL error of this thread, in words; clears the queue.
std::string ssl_error() {
  unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown reason";
  const char* reason = ERR_reason_error_string(code);
  return reason ? reason : "unknown reason";
}

SSL_CTX* make_settings() {
  SSL_CTX* context = SSL_CTX_new(TLS_method());
  if (!context) return nullptr;
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  // AES-128 first: it is strong enough, and the cipher limits how fast a checkpoint is sent.
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
  // Connections are kept open, not resumed: no session cache, no tickets after the handshake.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  // Lets one recv(2) fetch several records.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, 128 << 10);
  return context;
}

// Shared by all connections; each connection has its own certificate and trusted CA.
SSL_CTX* settings() {
  static SSL_CTX* const context = make_settings();
  return context;
}

// Whether this is the peer's alert that it rejects our certificate.
bool is_certificate_alert(int reason) {
  switch (reason) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
      return true;
    default:
      return false;
  }
}

std::unexpected<Error> bad(const char* what) {
  return fail(ErrorCode::kInvalid, std::format("{} can't be used: {}", what, ssl_error()));
}

}  // namespace

Result<Credentials> load_credentials(const std::string& directory) {
  BSP_TRY(std::string ca, read_file(directory + "/ca.pem"));
  BSP_TRY(std::string certificate, read_file(directory + "/cert.pem"));
  BSP_TRY(std::string key, read_file(directory + "/key.pem"));
  return Credentials{std::move(ca), std::move(certificate), std::move(key)};
}

struct TlsContext::Parsed {
  std::shared_ptr<X509_STORE> trusted;
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;
  static Result<Parsed> from(const Credentials& credentials);
  [[nodiscard]] Result<Ssl> new_connection() const;
};

struct TlsContext::Held {
  explicit Held(Credentials credentials) : text(std::move(credentials)) {}
  std::mutex mutex;
  std::optional<Credentials> text;  // until they are parsed
  Result<Parsed> parsed;

  Result<Parsed> get() {
    const std::lock_guard lock(mutex);
    if (text) parsed = Parsed::from(*std::exchange(text, std::nullopt));
    return parsed;
  }
  void set(Parsed renewed) {
    const std::lock_guard lock(mutex);
    text.reset();
    parsed = std::move(renewed);
  }
};

Result<TlsContext::Parsed> TlsContext::Parsed::from(const Credentials& credentials) {
  if (!settings()) return fail(ErrorCode::kFailed, std::format("OpenSSL: {}", ssl_error()));
  auto text = [](const std::string& pem) {
    return own(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  };
  Parsed parsed;
  parsed.trusted = {X509_STORE_new(), X509_STORE_free};
  auto ca = own(PEM_read_bio_X509(text(credentials.ca).get(), nullptr, nullptr, nullptr), X509_free);
  if (!ca || X509_STORE_add_cert(parsed.trusted.get(), ca.get()) != 1) return bad("the CA's certificate");
  parsed.certificate = {PEM_read_bio_X509(text(credentials.certificate).get(), nullptr, nullptr, nullptr), X509_free};
  if (!parsed.certificate) return bad("the certificate");
  parsed.key = {PEM_read_bio_PrivateKey(text(credentials.key).get(), nullptr, nullptr, nullptr), EVP_PKEY_free};
  if (!parsed.key || X509_check_private_key(parsed.certificate.get(), parsed.key.get()) != 1)
    return bad("the private key");
  return parsed;
}

Result<TlsContext> TlsContext::create(const Credentials& credentials) {
  TlsContext result = create_late(credentials);
  // Report here what OpenSSL rejects, such as a key that is too short, rather than at the first connection.
  BSP_TRY(const Ssl probe, result.new_connection());
  return result;
}

TlsContext TlsContext::create_late(Credentials credentials) {
  TlsContext result;
  result.held_ = std::make_shared<Held>(std::move(credentials));
  return result;
}

Result<void> TlsContext::renew(const Credentials& credentials) {
  BSP_TRY(Parsed parsed, Parsed::from(credentials));
  BSP_TRY(const Ssl probe, parsed.new_connection());
  held_->set(std::move(parsed));
  return {};
}

Result<Ssl> TlsContext::new_connection() const {
  BSP_TRY(const Parsed parsed, held_->get());
  return parsed.new_connection();
}

Result<Ssl> TlsContext::Parsed::new_connection() const {
  Ssl ssl(SSL_new(settings()));
  if (!ssl || SSL_set1_verify_cert_store(ssl.get(), trusted.get()) != 1)
    return fail(ErrorCode::kNoSpace, std::format("OpenSSL: {}", ssl_error()));
  if (SSL_use_certificate(ssl.get(), certificate.get()) != 1) return bad("the certificate");
  if (SSL_use_PrivateKey(ssl.get(), key.get()) != 1) return bad("the private key");
  return ssl;
}

void SslFree::operator()(ssl_st* ssl) const { SSL_free(ssl); }

void TlsSocket::OutputDeleter::operator()(TlsOutput* output) const { delete output; }

TlsSocket::TlsSocket(TlsContext context, Fd socket, TlsRole role)
    : context_(std::move(context)), role_(role), socket_(std::move(socket)) {}

Result<void> TlsSocket::begin() {
  BSP_TRY(ssl_, context_.new_connection());
  output_.reset(new TlsOutput{.fd = socket_.get()});
  BIO* bio = make_bio(output_.get());
  SSL_set_bio(ssl_.get(), bio, bio);
  if (role_ == TlsRole::kClient)
    SSL_set_connect_state(ssl_.get());
  else
    SSL_set_accept_state(ssl_.get());
  if (role_ == TlsRole::kServerOfAnyone) SSL_set_verify(ssl_.get(), SSL_VERIFY_NONE, nullptr);
  return {};
}

Result<TlsSocket::Progress> TlsSocket::outcome(int returned, const char* what) {
  int system_error = errno;
  switch (SSL_get_error(ssl_.get(), returned)) {
    case SSL_ERROR_NONE:
      return Progress{};
    case SSL_ERROR_WANT_READ:
      return Progress{.wait = Wait::kReadable};
    case SSL_ERROR_WANT_WRITE:
      return Progress{.wait = Wait::kWritable};
    case SSL_ERROR_ZERO_RETURN:
      return Progress{.end = true};
    case SSL_ERROR_SYSCALL:
      ERR_clear_error();
      if (system_error != 0) return fail_errno(what, system_error);
      return fail(ErrorCode::kUnavailable, std::format("{}: the peer closed the connection", what), true);
    default: {
      if (long verdict = SSL_get_verify_result(ssl_.get()); verdict != X509_V_OK) {
        ERR_clear_error();
        return fail(
            ErrorCode::kUntrusted,
            std::format("{}: the peer's certificate was rejected: {}", what, X509_verify_cert_error_string(verdict)),
            true);
      }
      unsigned long code = ERR_peek_last_error();
      bool cut = ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
      if (cut) {
        ERR_clear_error();
        return fail(ErrorCode::kUnavailable, std::format("{}: the peer closed the connection", what), true);
      }
      if (is_certificate_alert(ERR_GET_REASON(code)))
        return fail(ErrorCode::kUntrusted, std::format("{}: TLS: {}", what, ssl_error()), true);
      return fail(ErrorCode::kRefused, std::format("{}: TLS: {}", what, ssl_error()));
    }
  }
}

Result<TlsSocket::Progress> TlsSocket::handshake() {
  if (!ssl_) BSP_CHECK_OK(begin());
  ERR_clear_error();
  errno = 0;
  int n = SSL_do_handshake(ssl_.get());
  return outcome(n, "handshake");
}

Result<TlsSocket::Progress> TlsSocket::read(std::span<std::byte> into) {
  ERR_clear_error();
  errno = 0;
  std::size_t got = 0;
  int n = SSL_read_ex(ssl_.get(), into.data(), into.size(), &got);
  if (n == 1) return Progress{.bytes = got};
  return outcome(n, "reading");
}

// In TLS 1.3 a server may reject our certificate after we consider the connection open and start writing. The alert
// that says why it hung up can still be read.
Error TlsSocket::rejection_or(Error otherwise) {
  std::byte one;
  const auto received = read(std::span(&one, 1));
  return !received && received.error().code == ErrorCode::kUntrusted ? received.error() : otherwise;
}

// Batches records: one is 16 KiB at most, and a send(2) for each would cost more than encrypting it. Encrypted bytes
// must be sent, so if the socket is full, the caller has to call again with the same bytes.
Result<TlsSocket::Progress> TlsSocket::write(std::span<const std::byte> from) {
  TlsOutput& output = *output_;
  if (output.consumed == 0) {
    output.collecting = true;
    while (output.consumed < from.size() && output.bytes.size() - output.sent < kBatchBytes) {
      ERR_clear_error();
      errno = 0;
      std::size_t put = 0;
      const int n = SSL_write_ex(ssl_.get(), from.data() + output.consumed, from.size() - output.consumed, &put);
      if (n != 1) {
        output.collecting = false;
        output.consumed = 0;
        return outcome(n, "writing");
      }
      output.consumed += put;
    }
    output.collecting = false;
  }
  while (!output.sent_all()) {
    const ssize_t n =
        ::send(output.fd, output.bytes.data() + output.sent, output.bytes.size() - output.sent, MSG_NOSIGNAL);
    if (n >= 0) {
      output.sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      return Progress{.wait = Wait::kWritable};
    } else if (errno != EINTR) {
      return std::unexpected(rejection_or(fail_errno("writing").error()));
    }
  }
  output.bytes.clear();
  output.sent = 0;
  return Progress{.bytes = std::exchange(output.consumed, 0)};
}

Result<TlsSocket::Progress> TlsSocket::close_write() {
  ERR_clear_error();
  errno = 0;
  int n = SSL_shutdown(ssl_.get());
  if (n >= 0) return Progress{};  // 0: our close_notify is sent; we don't wait for the peer's
  return outcome(n, "closing");
}

bool TlsSocket::has_pending() const { return SSL_has_pending(ssl_.get()) == 1; }

Result<std::string> TlsSocket::peer_identity() const {
  X509* certificate = SSL_get0_peer_certificate(ssl_.get());
  if (!certificate) return fail(ErrorCode::kRefused, "the peer presented no certificate");
  X509_NAME* subject = X509_get_subject_name(certificate);
  int index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (index < 0) return fail(ErrorCode::kRefused, "the peer's certificate has no CN");
  unsigned char* text = nullptr;
  int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)));
  if (size < 0) return fail(ErrorCode::kRefused, "the peer's CN is not text");
  std::string name(reinterpret_cast<char*>(text), static_cast<std::size_t>(size));
  OPENSSL_free(text);
  return name;
}

}  // namespace bsp::net
