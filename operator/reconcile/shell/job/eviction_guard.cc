#include "operator/reconcile/shell/job/eviction_guard.h"

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/kernel/drain.h"

namespace bsp::reconcile {

namespace {
constexpr std::chrono::minutes kProtectAgain{1};
}

void EvictionGuard::keep(const crds::BspJob& job, bool on) {
  const auto now = std::chrono::steady_clock::now();
  if (!evictions_ || (on == on_ && (!on || now < again_))) return;
  if (!on && job.status.phase == crds::JobPhase::kPending) return;  // there is none yet, or it may stay
  const bool begun = calls_->once("protect the pods", [&client = client_, job = job_ref_, on,
                                                       budget = make_disruption_budget(job)] {
    const auto done = on ? client.create(budget).transform([](const auto&) {})
                         : client.remove(job.own(kDisruptionBudget, kube::metadata_text(budget, "name")), "");
    // There already, or gone already.
    const ErrorCode code = done ? ErrorCode::kConflict : done.error().code;
    if (code != ErrorCode::kConflict && code != ErrorCode::kNotFound)
      log_warning("keeping a job's PodDisruptionBudget failed", {{"job", job.key()}, {"error", done.error().message}});
  });
  if (!begun) return;
  on_ = on;
  again_ = now + kProtectAgain;
}

}  // namespace bsp::reconcile
