// Answers the API server's question about evictions of ranks' pods (operator/reconcile/kernel/eviction.h), in every replica.
//
//   API server ── POST https://<service>/<secret path>, AdmissionReview ─> pod, job, budget, node, RankMigrations ─> the answer
//       └ trusts the CA and knows the path from the ValidatingWebhookConfiguration, where a replica has written both
//
// The CA, and so every replica's certificate, follows from the seed of the jobs' certificates. So does the path: API servers
// present no certificate to webhooks, and whoever else reaches the port must not make ranks move. Wherever it fails, evictions
// are what they are without it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/core/clock.h"
#include "operator/controller/endpoints.h"
#include "operator/controller/rounds.h"
#include "operator/kube/api_client.h"

namespace bsp::controller {

struct WebhookOptions {
  std::string address;         // "[::]:9443"
  std::string name;            // of the Service and of the ValidatingWebhookConfiguration
  std::string own_name_space;  // the Service's, and the seed's
  std::string seed_name;       // the Secret's
  std::string name_space;      // of the jobs; "": all
  std::chrono::milliseconds keep_every = std::chrono::minutes(1);
  std::chrono::milliseconds try_again = std::chrono::seconds(5);
};

class EvictionWebhook {
 public:
  static Result<std::unique_ptr<EvictionWebhook>> open(const kube::Config& config, WebhookOptions options);
  ~EvictionWebhook();
  EvictionWebhook(const EvictionWebhook&) = delete;
  EvictionWebhook& operator=(const EvictionWebhook&) = delete;

 private:
  // What follows from the seed.
  struct Identity {
    std::string seed, path;
    std::string ca;           // PEM
    std::string certificate;  // PEM, of this replica
    Time made{};
  };
  EvictionWebhook(WebhookOptions options, std::unique_ptr<kube::ApiClient> client,
                  std::unique_ptr<kube::ApiClient> keeper)
      : options_(std::move(options)), client_(std::move(client)), keeper_(std::move(keeper)) {}
  Result<void> start();
  Rounds::Next keep();
  Result<void> become(const std::string& seed);
  [[nodiscard]] Result<bool> register_here();
  Page answer(const std::string& path, const std::string& body);

  const WebhookOptions options_;
  const std::unique_ptr<kube::ApiClient> client_;  // for answers
  const std::unique_ptr<kube::ApiClient> keeper_;  // for the seed and the registration, which may wait
  std::optional<net::TlsContext> tls_;
  Identity identity_;        // of keeper's thread; the port's thread reads path_
  bool knows_seed_ = false;  // else the identity is nobody's
  std::mutex mutex_;
  std::string path_;
  std::unique_ptr<Endpoints> port_;
  std::optional<Rounds> keeping_;
};

}  // namespace bsp::controller
