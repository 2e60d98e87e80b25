#include "operator/reconcile/shell/waiting_jobs.h"

#include <optional>

#include "base/json/fields.h"
#include "operator/kube/modify.h"

namespace bsp::reconcile {
namespace {

std::optional<WaitingJob> waiting(const std::string& key, const kube::Object& object) {
  const auto& status = part_at(object, "status");
  // Most jobs don't wait, and reading one whole costs more than these two fields.
  if (text_at(status, "phase") != crds::to_string(crds::JobPhase::kPending)) return std::nullopt;
  if (text_at(status, "reason") != kWaitingForSlots || kube::is_being_deleted(object)) return std::nullopt;
  const auto job = crds::bsp_job_from_json(object);
  if (!job || job->spec.run_policy.suspend) return std::nullopt;
  return waiting_job(key, *job);
}

}  // namespace

void WaitingJobs::note(const std::string& key, const kube::Object* object) {
  auto job = object ? waiting(key, *object) : std::nullopt;
  const std::lock_guard lock(mutex_);
  if (job)
    jobs_.insert_or_assign(key, std::move(*job));
  else
    jobs_.erase(key);
}

std::string WaitingJobs::ahead_of(const WaitingJob& mine) const {
  const std::lock_guard lock(mutex_);
  return reconcile::ahead_of(mine, jobs_);
}

std::vector<std::string> WaitingJobs::wanted_by_none_ahead(const WaitingJob& mine,
                                                           const std::vector<std::string>& sets) const {
  const std::lock_guard lock(mutex_);
  return reconcile::wanted_by_none_ahead(mine, jobs_, sets);
}

}  // namespace bsp::reconcile
