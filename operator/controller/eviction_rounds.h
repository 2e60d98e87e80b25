// The rounds of a leader that answers Evictions (operator/reconcile/shell/eviction_responder.h), on a thread and with a client of
// their own.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "operator/controller/rounds.h"
#include "operator/kube/api_client.h"
#include "operator/reconcile/shell/eviction_responder.h"

namespace bsp::controller {

class EvictionRounds {
 public:
  // `name_space`: of the jobs; "": all.
  static Result<std::unique_ptr<EvictionRounds>> begin(const kube::Config& config, const std::string& name_space,
                                                       std::chrono::milliseconds every = std::chrono::seconds(5));
  ~EvictionRounds();
  EvictionRounds(const EvictionRounds&) = delete;
  EvictionRounds& operator=(const EvictionRounds&) = delete;

  [[nodiscard]] bool serves() const { return responder_.serves(); }
  // EvictionResponder's.
  void complete_before_removal(kube::Client& client, const kube::Key& pod, const std::string& pod_uid) {
    responder_.complete_before_removal(client, pod, pod_uid, SystemClock::now());
  }

 private:
  EvictionRounds(std::unique_ptr<kube::ApiClient> client, const std::string& name_space)
      : client_(std::move(client)), responder_(*client_, name_space) {}

  const std::unique_ptr<kube::ApiClient> client_;
  reconcile::EvictionResponder responder_;
  std::optional<Rounds> rounds_;
};

}  // namespace bsp::controller
