// A few pages over plain HTTP: what probes and Prometheus ask for (cpprestsdk's http_listener).
//
// A page is made on cpprestsdk's one thread, which the API client needs too: it must not wait for anything.
#pragma once

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

class Endpoints {
 public:
  // "0.0.0.0:8080"; paths such as "/metrics". kFailed if nobody can listen there.
  static Result<std::unique_ptr<Endpoints>> open(const std::string& address,
                                                 std::map<std::string, std::function<Page()>> pages);
  ~Endpoints();  // no page is being made any more
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

 private:
  struct Impl;
  explicit Endpoints(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bsp::controller
