// An HTTPS server of the test's own, a thread per connection, that can be told to misbehave on the wire.
#pragma once

#include <openssl/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/core/fd.h"
#include "base/net/pki.h"

namespace bsp::kube_test {

struct Request {
  std::string method;
  std::string target;                          // path and query
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string client;  // CN of the client's certificate, "" without one
};

// What happens to the answers of the next requests that match.
struct Fault {
  enum What {
    kAnswer,  // `status`, `headers` and `body` instead of the handler's answer; the handler is not asked
    kCut,     // the connection breaks without a goodbye after `after` bytes (0: the answer is lost whole)
    kEnd,     // the same, but TLS and TCP are closed politely
    kStall,   // not a byte more after `after` bytes, until release()
    kSwap,    // `after` counts the pieces that pass before one is held back and sent behind the next
  };
  std::string match;  // part of "GET /api/v1/pods?limit=250"
  What what = kAnswer;
  int times = 1;
  std::size_t after = 0;
  int status = 500;
  std::string headers = {};  // "Retry-After: 1\r\n"
  std::string body = {};
};

class Connection;

// The answer to one request. Everything returns false once the connection is gone.
class Reply {
 public:
  explicit Reply(Connection& connection) : connection_(connection) {}
  bool whole(int status, const std::string& body, const std::string& headers = "");
  bool begin(int status);  // in pieces (chunked)
  bool piece(const std::string& bytes);
  bool end();
  // False when the client or the test is gone. Waits up to 20 ms for that.
  bool alive();

 private:
  bool raw(const std::string& bytes);
  Connection& connection_;
  std::string held_;
  std::size_t pieces_ = 0;
};

class TlsServer {
 public:
  using Handler = std::function<void(const Request&, Reply&)>;
  // Listens on 127.0.0.1. A client's certificate is asked for and checked against `ca`, but may be missing.
  TlsServer(const net::PemPair& certificate, const std::string& ca, Handler handler, int port = 0);
  ~TlsServer();

  [[nodiscard]] int port() const { return port_; }
  void inject(Fault fault);
  void clear_faults();
  // Lets all stalled connections end.
  void release();
  // Breaks every connection there is.
  void cut_all();
  [[nodiscard]] int connections();  // accepted so far
  [[nodiscard]] int requests(const std::string& match);
  // Waits, with a limit, until so many such requests have come in since the start.
  bool wait_for_requests(const std::string& match, int count);

 private:
  friend class Connection;
  friend class Reply;
  void accept_loop();
  void serve(int fd);
  bool take_fault(const std::string& line, Fault& fault);

  Handler handler_;
  SSL_CTX* context_;
  Fd listener_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::uint64_t released_ = 0;
  std::list<Fault> faults_;
  std::vector<std::string> log_;
  std::vector<int> open_;
  int accepted_ = 0;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace bsp::kube_test
