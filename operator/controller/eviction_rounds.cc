#include "operator/controller/eviction_rounds.h"

#include <algorithm>

namespace bsp::controller {

using namespace std::chrono_literals;

namespace {
// An API server that has no Evictions may have them once it was started anew.
constexpr std::chrono::milliseconds kAskWhetherThereAre = 1min;
constexpr kube::ApiOptions kRoundCalls{.call = 10s, .attempt = 5s};
}  // namespace

Result<std::unique_ptr<EvictionRounds>> EvictionRounds::begin(const kube::Config& config, const std::string& name_space,
                                                              std::chrono::milliseconds every) {
  BSP_TRY(auto client, kube::ApiClient::create(config, {.api = kRoundCalls}));
  std::unique_ptr<EvictionRounds> all(new EvictionRounds(std::move(client), name_space));
  const auto not_served = std::max(every, kAskWhetherThereAre);
  const auto round = [&responder = all->responder_, every, not_served]() -> Rounds::Next {
    BSP_CHECK_OK(responder.round(SystemClock::now()));
    return responder.serves() ? every : not_served;
  };
  all->rounds_.emplace(round, every, "EvictionRequests for ranks' pods are not answered");
  return all;
}

EvictionRounds::~EvictionRounds() {
  rounds_->stop();
  client_->close();
}

}  // namespace bsp::controller
