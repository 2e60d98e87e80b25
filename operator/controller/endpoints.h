// The pages for probes and Prometheus, over plain HTTP/1.1, and the answers to a webhook, over TLS.
//
// Any client that reaches the port may misuse it, so nothing else depends on it: each Endpoints has its own thread
// (cpprestsdk's only thread renews the Lease) and limits what clients can hold. One request per connection. When all
// connections are in use, a new one replaces the oldest of the client with the most, so that no client can shut out the
// kubelet.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/core/error.h"
#include "base/net/tls.h"
#include "operator/controller/page.h"

namespace bsp::controller {

struct EndpointLimits {
  std::size_t connections = 64;
  std::size_t request = 8 << 10;           // bytes up to the end of the headers
  std::size_t body = 0;                    // bytes after them
  std::chrono::milliseconds time{10'000};  // of a connection, from its first byte to its last
  // Younger pages are served from a cache, so that a client in a loop costs little more than the bytes.
  std::chrono::milliseconds fresh{0};
};

// Either pages to GET, by paths such as "/metrics", or one function of all POSTs. Both are called on the Endpoints' thread.
struct Served {
  std::map<std::string, std::function<Page()>> pages = {};
  std::function<Page(const std::string& path, const std::string& body)> post = {};
  std::optional<net::TlsContext> tls = {};  // not set: plain HTTP. No client needs a certificate
};

class Endpoints {
 public:
  // "[::]:8080". kFailed if the address can't be bound.
  static Result<std::unique_ptr<Endpoints>> open(const std::string& address, Served served,
                                                 const EndpointLimits& limits = {});
  ~Endpoints();  // no page is being made afterwards
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

 private:
  class Server;
  explicit Endpoints(std::unique_ptr<Server> server);
  std::unique_ptr<Server> server_;
};

}  // namespace bsp::controller
