// The test's HTTPS server, with a thread per connection, that can inject faults.
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

// A fault in the answers to the next matching requests.
struct Fault {
  enum What {
    kAnswer,  // send `status`, `headers` and `body` without calling the handler
    kCut,     // break the connection after `after` bytes, without close_notify (0: the whole answer is lost)
    kEnd,     // the same, but close TLS and TCP cleanly
    kStall,   // send nothing more after `after` bytes, until release()
    kSwap,    // let `after` pieces pass, then send the next two in reverse order
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

// The answer to one request. All functions return false once the connection is closed.
class Reply {
 public:
  explicit Reply(Connection& connection) : connection_(connection) {}
  bool whole(int status, const std::string& body, const std::string& headers = "");
  bool begin(int status);  // in pieces (chunked)
  bool piece(const std::string& bytes);
  bool end();
  // False if the client has disconnected or the test has ended. Waits up to 20 ms for that.
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
  // Listens on 127.0.0.1. Requests a client certificate and verifies it against `ca`, but doesn't require one.
  TlsServer(const net::PemPair& certificate, const std::string& ca, Handler handler, int port = 0);
  ~TlsServer();

  [[nodiscard]] int port() const { return port_; }
  void inject(Fault fault);
  void clear_faults();
  // Releases all stalled connections.
  void release();
  // Breaks all open connections.
  void cut_all();
  [[nodiscard]] int connections();  // accepted so far
  [[nodiscard]] int requests(const std::string& match);
  // Waits, with a timeout, until that many matching requests have arrived since the start.
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
