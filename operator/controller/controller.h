// The operator in a Kubernetes cluster: while it is the leader, it runs the shell with an API client of its own.
//
//     Lease ─> LeaderElection ─> leads: ApiClient ─> Shell        /healthz /readyz /metrics at any time
//                             ├> loses the lead: closes the client, so that no call outlives the
//                             │  term, and ends the shell
//                             └> can't start: gives up the Lease for a while
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/net/tls.h"
#include "operator/controller/endpoints.h"
#include "operator/controller/eviction_rounds.h"
#include "operator/controller/eviction_webhook.h"
#include "operator/controller/metrics.h"
#include "operator/controller/options.h"
#include "operator/kube/api_client.h"
#include "operator/kube/leader.h"
#include "operator/reconcile/shell/shell.h"

namespace bsp::controller {

class Controller {
 public:
  // Doesn't wait for the API server; until the server answers, readiness() says why.
  static Result<std::unique_ptr<Controller>> start(const Options& options, const kube::Config& config);
  // Stops all work and releases the Lease.
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  [[nodiscard]] Page readiness();
  [[nodiscard]] Page metrics();

 private:
  // What exists only while this replica is the leader.
  struct Term {
    std::unique_ptr<kube::ApiClient> client, logs;
    std::unique_ptr<EvictionRounds> evictions;
    std::unique_ptr<reconcile::RespondingClient> responding;
    std::unique_ptr<reconcile::Shell> shell;
  };
  Controller(Options options, kube::Config config) : options_(std::move(options)), config_(std::move(config)) {}
  Result<void> open();
  [[nodiscard]] std::string own_name_space() const;
  Result<reconcile::ExchangePlace> exchange_place() const;
  Result<void> lead(bool leads);
  Result<std::unique_ptr<Term>> begin_term();
  void end_term();

  const Options options_;
  const kube::Config config_;
  std::optional<net::TlsContext> exchange_tls_;  // nullopt: no load exchange
  std::mutex mutex_;
  std::unique_ptr<Term> term_;
  std::string trouble_;  // why this replica couldn't start as leader when it last was to; "": it could
  std::unique_ptr<kube::ApiClient> lease_client_;
  std::unique_ptr<kube::LeaderElection> election_;
  std::unique_ptr<Endpoints> metrics_, health_;
  std::unique_ptr<EvictionWebhook> evictions_;
};

}  // namespace bsp::controller
