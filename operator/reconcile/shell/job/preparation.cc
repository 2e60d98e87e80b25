#include "operator/reconcile/shell/job/preparation.h"

#include <algorithm>

#include "base/core/log.h"

namespace bsp::reconcile {

std::optional<Prepared> Preparation::prepare(const crds::BspJob& job) {
  if (const auto ready = complete(job); !ready) {
    report(ready.error().message);
    return std::nullopt;
  }
  not_prepared_.clear();
  return Prepared{*sidecars_, certificates_.signer()};
}

Result<void> Preparation::complete(const crds::BspJob& job) {
  BSP_CHECK_OK(add_finalizer(job));
  BSP_CHECK_OK(isolation_.keep(job));
  BSP_CHECK_OK(link(job));
  certificates_.renew_if_due(job, sidecars_->take_untrusted(), pods_);
  return {};
}

Result<Sidecars*> Preparation::link(const crds::BspJob& job) {
  if (!sidecars_) {
    BSP_CHECK_OK(certificates_.begin(job));
    sidecars_ = std::make_unique<Sidecars>(
        parts_.shell.sidecar_thread,
        Sidecars::Options{.tls = certificates_.tls(), .changed = parts_.changed, .job = parts_.job.key()});
  }
  return sidecars_.get();
}

Result<void> Preparation::add_finalizer(const crds::BspJob& job) {
  if (job.metadata.deletion_timestamp != Time{} || std::ranges::contains(job.metadata.finalizers, names::kFinalizer))
    return {};
  BSP_TRY(kube::Object current, parts_.shell.client.get(parts_.job.at));
  current["metadata"]["finalizers"].push_back(names::kFinalizer);
  BSP_TRY(const kube::Object updated, parts_.shell.client.update(current));
  parts_.shell.cache.put(updated);
  return {};
}

void Preparation::report(const std::string& problem) {
  if (!not_prepared_.is_news(problem)) return;
  log_warning("failed to prepare a job", {{"job", parts_.job.key()}, {"error", problem}});
  const crds::BspJob* job = stored_.read();  // it may have its finalizer since
  if (!job || job->status.phase != crds::JobPhase::kPending || job->metadata.deletion_timestamp != Time{}) return;
  crds::BspJobStatus status = job->status;
  status.reason = "NotPrepared";
  status.message = problem;
  if (!status_.store(*job, status)) not_prepared_.clear();
}

}  // namespace bsp::reconcile
