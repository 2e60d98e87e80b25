#include "tls_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <format>

#include "base/core/error.h"

namespace bsp::kube_test {

using namespace std::chrono_literals;

class Connection {
 public:
  Connection(TlsServer& server, int fd) : server_(server), fd_(fd), ssl_(SSL_new(server.context_)) {
    SSL_set_fd(ssl_, fd);
  }
  ~Connection() { SSL_free(ssl_); }

  bool accept() { return SSL_accept(ssl_) == 1; }

  bool read(Request& request) {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
      if (!more()) return false;
    request = {};
    std::size_t line = buffer_.find("\r\n");
    const std::string first = buffer_.substr(0, line);
    const std::size_t a = first.find(' '), b = first.rfind(' ');
    if (a == std::string::npos || b <= a) return false;
    request.method = first.substr(0, a);
    request.target = first.substr(a + 1, b - a - 1);
    while (line < end) {
      const std::size_t from = line + 2, to = buffer_.find("\r\n", from), colon = buffer_.find(':', from);
      std::string name = buffer_.substr(from, colon - from);
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      const std::size_t value = buffer_.find_first_not_of(' ', colon + 1);
      request.headers[name] = buffer_.substr(value, to - value);
      line = to;
    }
    buffer_.erase(0, end + 4);
    const auto length = request.headers.find("content-length");
    const std::size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
    while (buffer_.size() < size)
      if (!more()) return false;
    request.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    if (X509* certificate = SSL_get1_peer_certificate(ssl_)) {
      char name[256] = "";
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
      request.client = name;
      X509_free(certificate);
    }
    return true;
  }

  // Applies the fault of this request.
  bool write(std::string bytes) {
    if (gone_) return false;
    const bool limited = has_fault && fault.what != Fault::kAnswer && fault.what != Fault::kSwap;
    const bool reached = limited && written_ + bytes.size() >= fault.after;
    if (reached) bytes.resize(fault.after - written_);
    written_ += bytes.size();
    if (!bytes.empty() && SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) <= 0) gone_ = true;
    if (reached) {
      if (fault.what == Fault::kStall) stall();
      if (fault.what == Fault::kEnd) SSL_shutdown(ssl_);
      gone_ = true;
    }
    return !gone_;
  }

  bool peer_is_there() {
    if (gone_) return false;
    pollfd p{fd_, POLLIN | POLLRDHUP, 0};
    if (::poll(&p, 1, 20) > 0) {
      // During an answer a client sends only close_notify.
      char byte = 0;
      if (SSL_read(ssl_, &byte, 1) <= 0)
        gone_ = true;
      else
        buffer_ += byte;
    }
    const std::lock_guard lock(server_.mutex_);
    return !gone_ && !server_.stop_;
  }

  void begin_answer() {
    written_ = 0;
    has_fault = false;
  }
  bool gone() const { return gone_; }

  bool has_fault = false;
  Fault fault;

 private:
  bool more() {
    char bytes[16384];
    const int size = SSL_read(ssl_, bytes, sizeof bytes);
    if (size <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(size));
    return true;
  }
  void stall() {
    std::unique_lock lock(server_.mutex_);
    server_.changed_.wait(lock, [&, now = server_.released_] { return server_.stop_ || server_.released_ != now; });
  }

  TlsServer& server_;
  int fd_;
  SSL* ssl_;
  std::string buffer_;
  std::size_t written_ = 0;
  bool gone_ = false;
};

// --- Reply --------------------------------------------------------------------------------------------------

bool Reply::raw(const std::string& bytes) { return connection_.write(bytes); }

bool Reply::whole(int status, const std::string& body, const std::string& headers) {
  return raw(std::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}", status,
                         headers, body.size(), body));
}

bool Reply::begin(int status) {
  return raw(
      std::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", status));
}

bool Reply::piece(const std::string& bytes) {
  const std::string chunk = std::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
  const bool swap = connection_.has_fault && connection_.fault.what == Fault::kSwap;
  if (swap && pieces_++ == connection_.fault.after) {
    held_ = chunk;
    return true;
  }
  return raw(chunk) && (held_.empty() || raw(std::exchange(held_, {})));
}

bool Reply::end() { return raw(std::exchange(held_, {}) + "0\r\n\r\n"); }
bool Reply::alive() { return connection_.peer_is_there(); }

// --- Server -------------------------------------------------------------------------------------------------

namespace {

int optional_client(int, X509_STORE_CTX* chain) {
  // Accepts a client without a certificate, but rejects an invalid certificate.
  return X509_STORE_CTX_get_error(chain) == X509_V_OK;
}

SSL_CTX* make_context(const net::PemPair& pair, const std::string& ca) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  BIO* bio = BIO_new_mem_buf(pair.certificate.data(), static_cast<int>(pair.certificate.size()));
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  bio = BIO_new_mem_buf(pair.key.data(), static_cast<int>(pair.key.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  check(SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1, "a good pair");
  X509_free(certificate);
  EVP_PKEY_free(key);
  bio = BIO_new_mem_buf(ca.data(), static_cast<int>(ca.size()));
  X509* authority = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority);
  X509_free(authority);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, optional_client);
  return context;
}

}  // namespace

TlsServer::TlsServer(const net::PemPair& certificate, const std::string& ca, Handler handler, int port)
    : handler_(std::move(handler)), context_(make_context(certificate, ca)) {
  std::signal(SIGPIPE, SIG_IGN);
  listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  check(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(listener_.get(), 64) == 0,
        "a listening socket");
  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

TlsServer::~TlsServer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  changed_.notify_all();
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  SSL_CTX_free(context_);
}

void TlsServer::accept_loop() {
  for (;;) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (stop_ || fd < 0) {
      Fd(fd).reset();
      return;
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    open_.push_back(fd);
    ++accepted_;
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void TlsServer::serve(int fd) {
  {
    Connection connection(*this, fd);
    Request request;
    if (connection.accept())
      while (connection.read(request)) {
        const std::string line = request.method + " " + request.target;
        connection.begin_answer();
        {
          const std::lock_guard lock(mutex_);
          log_.push_back(line);
        }
        changed_.notify_all();
        connection.has_fault = take_fault(line, connection.fault);
        Reply reply(connection);
        if (connection.has_fault && connection.fault.what == Fault::kAnswer)
          reply.whole(connection.fault.status, connection.fault.body, connection.fault.headers);
        else
          handler_(request, reply);
        if (connection.gone()) break;
      }
    ERR_clear_error();
  }
  const std::lock_guard lock(mutex_);
  std::erase(open_, fd);
  Fd(fd).reset();
}

bool TlsServer::take_fault(const std::string& line, Fault& fault) {
  const std::lock_guard lock(mutex_);
  for (auto it = faults_.begin(); it != faults_.end(); ++it)
    if (line.find(it->match) != std::string::npos) {
      fault = *it;
      if (--it->times == 0) faults_.erase(it);
      return true;
    }
  return false;
}

void TlsServer::inject(Fault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(std::move(fault));
}

void TlsServer::clear_faults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
}

void TlsServer::release() {
  {
    const std::lock_guard lock(mutex_);
    ++released_;
  }
  changed_.notify_all();
}

void TlsServer::cut_all() {
  const std::lock_guard lock(mutex_);
  for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
}

int TlsServer::connections() {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

int TlsServer::requests(const std::string& match) {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(
      std::ranges::count_if(log_, [&](const std::string& line) { return line.find(match) != std::string::npos; }));
}

bool TlsServer::wait_for_requests(const std::string& match, int count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, 30s, [&] {
    return std::ranges::count_if(log_, [&](const std::string& l) { return l.find(match) != std::string::npos; }) >=
           count;
  });
}

}  // namespace bsp::kube_test
