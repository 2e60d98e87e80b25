#include "operator/controller/rounds.h"

#include <condition_variable>
#include <mutex>

#include "base/core/guard.h"
#include "base/core/log.h"
#include "operator/reconcile/shell/trouble.h"

namespace bsp::controller {

void Rounds::run(const std::stop_token& stop) const {
  reconcile::Trouble trouble;
  std::mutex mutex;
  std::condition_variable_any waiting;
  while (!stop.stop_requested()) {
    const auto round = guarded(round_);
    const Next next = round ? *round : std::unexpected(round.error());
    if (stop.stop_requested()) return;
    if (next)
      trouble.clear();
    else if (trouble.is_news(next.error().message))
      log_warning(failing_, {{"error", next.error().message}});
    std::unique_lock lock(mutex);
    waiting.wait_for(lock, stop, next.value_or(after_failure_), [] { return false; });
  }
}

}  // namespace bsp::controller
