#include "operator/reconcile/shell/job/eviction_guard.h"

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/kernel/drain.h"

namespace bsp::reconcile {

namespace {
constexpr std::chrono::minutes kProtectAgain{1};
constexpr std::chrono::seconds kProtectRetry{2};
}  // namespace

void EvictionGuard::keep(const crds::BspJob& job, bool on) {
  if (!evictions_) return;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->on == on && std::chrono::steady_clock::now() < state_->again) return;
  }
  if (!on && job.status.phase == crds::JobPhase::kPending) return;  // there is none yet, or it may stay
  calls_->once("protect the pods", [&client = client_, job = job_ref_, on, state = state_,
                                    budget = make_disruption_budget(job)] { write(client, job, budget, on, *state); });
}

// A budget that stays although it is no longer needed would keep its node from being drained for ever.
void EvictionGuard::write(kube::Client& client, const JobRef& job, const nlohmann::json& budget, bool on,
                          State& state) {
  const auto done = on ? client.create(budget).transform([](const auto&) {})
                       : client.remove(job.own(kDisruptionBudget, kube::metadata_text(budget, "name")), "");
  // There already, or gone already.
  const ErrorCode code = done ? ErrorCode::kConflict : done.error().code;
  const bool is_so = code == ErrorCode::kConflict || code == ErrorCode::kNotFound;
  if (!is_so)
    log_warning("keeping a job's PodDisruptionBudget failed", {{"job", job.key()}, {"error", done.error().message}});
  const std::lock_guard lock(state.mutex);
  const auto now = std::chrono::steady_clock::now();
  state.on = on;
  state.again = !is_so ? now + kProtectRetry : on ? now + kProtectAgain : SteadyTime::max();
}

}  // namespace bsp::reconcile
