#include "operator/controller/eviction_rounds.h"

#include <algorithm>

#include "base/core/guard.h"
#include "base/core/log.h"

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
  std::unique_ptr<EvictionRounds> rounds(new EvictionRounds(std::move(client), name_space, every));
  rounds->thread_ = std::thread([r = rounds.get()] { r->run(); });
  return rounds;
}

EvictionRounds::~EvictionRounds() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  client_->close();
  if (thread_.joinable()) thread_.join();
}

void EvictionRounds::run() {
  const ChecksThrow here;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const auto round = guarded([&] { return responder_.round(SystemClock::now()); });
    const Result<void> done = round ? *round : std::unexpected(round.error());
    lock.lock();
    if (stop_) return;
    if (done)
      trouble_.clear();
    else if (trouble_.is_news(done.error().message))
      log_warning("EvictionRequests for ranks' pods are not answered", {{"error", done.error().message}});
    const bool asks_seldom = !serves() && (done || !done.error().retryable);
    stopping_.wait_for(lock, asks_seldom ? std::max(every_, kAskWhetherThereAre) : every_, [&] { return stop_; });
  }
}

}  // namespace bsp::controller
