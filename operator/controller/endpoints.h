// The pages for probes and Prometheus, over plain HTTP/1.1.
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
#include <string>

#include "base/core/error.h"

namespace bsp::controller {

struct Page {
  int status = 200;
  std::string text;
};

struct EndpointLimits {
  std::size_t connections = 64;
  std::size_t request = 8 << 10;           // bytes up to the end of the headers
  std::chrono::milliseconds time{10'000};  // of a connection, from its first byte to its last
  // Younger pages are served from a cache, so that a client in a loop costs little more than the bytes.
  std::chrono::milliseconds fresh{0};
};

class Endpoints {
 public:
  // "0.0.0.0:8080"; paths such as "/metrics". Pages are made on this object's thread. kFailed if the address can't be
  // bound.
  static Result<std::unique_ptr<Endpoints>> open(const std::string& address,
                                                 std::map<std::string, std::function<Page()>> pages,
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
