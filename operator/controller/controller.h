// The operator in a Kubernetes cluster: while it leads, the shell runs over an API client of its own.
//
//     Lease ─> LeaderElection ─> leads: ApiClient ─> Shell        /healthz /readyz /metrics at any time
//                             └> no longer: the client is closed, so that no call outlives the
//                                leadership; the shell ends
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/net/tls.h"
#include "operator/controller/endpoints.h"
#include "operator/controller/metrics.h"
#include "operator/controller/options.h"
#include "operator/kube/api_client.h"
#include "operator/kube/leader.h"
#include "operator/reconcile/shell/shell.h"

namespace bsp::controller {

class Controller {
 public:
  // Does not wait for the API server: until it answers, readiness() says why not.
  static Result<std::unique_ptr<Controller>> start(const Options& options, const kube::Config& config);
  // Ends all work and lets go of the Lease.
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  [[nodiscard]] Page readiness();
  [[nodiscard]] Page metrics();

 private:
  // All there is only while we lead.
  struct Term {
    std::unique_ptr<kube::ApiClient> client, logs;
    std::unique_ptr<reconcile::Shell> shell;
  };
  Controller(Options options, kube::Config config) : options_(std::move(options)), config_(std::move(config)) {}
  Result<void> open();
  Result<reconcile::ExchangePlace> exchange_place() const;
  void lead(bool leads);
  Result<std::unique_ptr<Term>> begin_term();
  void end_term();

  const Options options_;
  const kube::Config config_;
  std::optional<net::TlsContext> exchange_tls_;  // nullopt: no loads are exchanged
  std::mutex mutex_;
  std::unique_ptr<Term> term_;
  std::unique_ptr<kube::ApiClient> lease_client_;
  std::unique_ptr<kube::LeaderElection> election_;
  std::unique_ptr<Endpoints> metrics_, health_;
};

}  // namespace bsp::controller
