// Says that the loop turns: answers every HTTP request with 200 and nothing else, in the loop's own thread.
//
// The kubelet asks (livenessProbe, operator/reconcile/kernel/pods.cc) and ends a sidecar that does not answer. It has no certificate
// of the job, so this is a port of its own, without TLS; and it is no command in the container, which would cost every node
// a process for every rank every few seconds. Nothing is read from the request, and nobody learns more than that it runs.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "base/core/error.h"
#include "base/core/fd.h"
#include "base/net/loop.h"

namespace bsp::sidecar {

class Liveness {
 public:
  static Result<std::unique_ptr<Liveness>> listen(net::Loop& loop, const std::string& address);
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  [[nodiscard]] std::uint16_t port() const;

 private:
  Liveness(net::Loop& loop, Fd listener);
  void accept_one();
  void answer(int socket);
  void forget(int socket);

  net::Loop& loop_;
  Fd listener_;
  std::list<Fd> asking_;  // oldest first
};

}  // namespace bsp::sidecar
