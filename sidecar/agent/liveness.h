// Proves that the loop runs: answers every HTTP request with 200 and nothing else, in the loop's own thread.
//
// The kubelet's livenessProbe (operator/reconcile/kernel/pods/pods.cc) restarts a sidecar that doesn't answer. The kubelet
// has no certificate of the job, so this is a separate port without TLS. An exec probe would cost every node a
// process per rank every few seconds. The request is not parsed, and the answer reveals only that the sidecar runs.
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
