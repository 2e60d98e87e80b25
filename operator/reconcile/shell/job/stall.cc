#include "operator/reconcile/shell/job/stall.h"

#include "base/core/log.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/shell/metrics.h"
#include "operator/reconcile/shell/raw_condition.h"

namespace bsp::reconcile {

Duration Stall::begin(const Error& error) {
  reconcile_retries.add({"error"});
  const Duration rest = rests_.next();
  until_ = std::chrono::steady_clock::now() + rest;
  log_error("failed to reconcile a job", {{"job", parts_.job.key()}, {"error", error.message}});
  write_condition(parts_, {.type = kStalled, .on = true, .reason = "InternalError", .message = error.message});
  return rest;
}

void Stall::end(const crds::BspJob* job) {
  rests_.reset();
  if (job && is_on(job->status, kStalled))
    write_condition(parts_,
                    {.type = kStalled, .on = false, .reason = "Recovered", .message = "the job is reconciled again"});
}

}  // namespace bsp::reconcile
