// A few pages over plain HTTP/1.1: what probes and Prometheus ask for.
//
// Whoever reaches the port may do what it likes there, so nothing else depends on it: each Endpoints has a thread of its own
// (cpprestsdk's one thread renews the Lease), and bounds what strangers hold. One request per connection. Where all
// connections are taken, the newest takes the place of the oldest one of the client that has most, so that no client keeps
// the kubelet out.
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
  // A page that is younger is given again: asking in a loop costs little more than the bytes.
  std::chrono::milliseconds fresh{0};
};

class Endpoints {
 public:
  // "0.0.0.0:8080"; paths such as "/metrics". Pages are made on the thread of these Endpoints. kFailed if nobody can listen
  // there.
  static Result<std::unique_ptr<Endpoints>> open(const std::string& address,
                                                 std::map<std::string, std::function<Page()>> pages,
                                                 const EndpointLimits& limits = {});
  ~Endpoints();  // no page is being made any more
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

 private:
  class Server;
  explicit Endpoints(std::unique_ptr<Server> server);
  std::unique_ptr<Server> server_;
};

}  // namespace bsp::controller
