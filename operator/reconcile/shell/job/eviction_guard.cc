#include "operator/reconcile/shell/job/eviction_guard.h"

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/drain.h"

namespace bsp::reconcile {

namespace {
constexpr std::chrono::minutes kProtectAgain{1};
constexpr std::chrono::seconds kProtectRetry{2}, kLowerAgain{5};
}  // namespace

void EvictionGuard::keep(const crds::BspJob& job, std::uint32_t pods) {
  if (!evictions_) return;
  {
    const std::lock_guard lock(state_->mutex);
    const auto now = std::chrono::steady_clock::now();
    if (state_->pods == pods && now < state_->again) return;
    // The ranks of a job end one by one.
    if (pods != 0 && state_->pods > pods && now < state_->lower) return;
  }
  if (pods == 0 && job.status.phase == crds::JobPhase::kPending) return;  // there is none yet, or it may stay
  calls_->once("protect the pods",
               [&client = client_, job = job_ref_, pods, state = state_, budget = make_disruption_budget(job, pods)] {
                 write(client, job, budget, pods, *state);
               });
}

// A budget that stays although it is no longer needed would keep its node from being drained for ever.
void EvictionGuard::write(kube::Client& client, const JobRef& job, const nlohmann::json& budget, std::uint32_t pods,
                          State& state) {
  const kube::Key at = job.own(kDisruptionBudget, kube::metadata_text(budget, "name"));
  Result<void> done = pods != 0 ? client.create(budget).transform([](const auto&) {}) : client.remove(at, "");
  if (pods != 0 && !done && done.error().code == ErrorCode::kConflict)  // it is there
    done = kube::modify(client, at, [&](kube::Object& there) {
             if (part_at(part_at(there, "spec"), "minAvailable") == pods) return false;
             there["spec"] = part_at(budget, "spec");
             return true;
           }).transform([](const auto&) {});
  if (pods == 0 && !done && done.error().code == ErrorCode::kNotFound) done = {};  // gone already
  if (!done)
    log_warning("keeping a job's PodDisruptionBudget failed", {{"job", job.key()}, {"error", done.error().message}});
  const std::lock_guard lock(state.mutex);
  const auto now = std::chrono::steady_clock::now();
  state.pods = pods;
  state.again = !done ? now + kProtectRetry : pods != 0 ? now + kProtectAgain : SteadyTime::max();
  state.lower = now + kLowerAgain;
}

}  // namespace bsp::reconcile
