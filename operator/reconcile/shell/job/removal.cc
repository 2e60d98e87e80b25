#include "operator/reconcile/shell/job/removal.h"

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"

namespace bsp::reconcile {

void JobRemoval::delete_job() const {
  calls_->once("delete the job", [&client = client_, job = job_ref_] {
    if (auto removed = client.remove(job.at, job.uid); !removed)
      log_warning("failed to delete a finished job", {{"job", job.key()}, {"error", removed.error().message}});
  });
}

// A cluster's garbage collector would delete what belongs to the job too, but later.
void JobRemoval::finish() const {
  // A RankMigration that is still being created would be left behind. The last call reconciles the job again.
  if (calls_->any_under_way()) return;
  // And listing Secrets would take permission to read all of them.
  if (!collects_garbage_ && (!remove_belongings(kRankMigration) || !remove_belongings(kSecret))) return;
  remove_finalizer();
}

bool JobRemoval::remove_belongings(const kube::Kind& kind) const {
  const auto found = client_.list(kind, job_ref_.at.name_space);
  if (!found) return log_warning("failed to list what belongs to a job", {{"error", found.error().message}}), false;
  for (const kube::Object& object : *found) {
    // One made by hand has no owner.
    const bool for_us = kind == kRankMigration && owner_of(object).uid.empty() &&
                        text_at(part_at(object, "spec"), "job") == job_ref_.at.name;
    if (!job_ref_.owns(object) && !for_us) continue;
    const auto removed =
        client_.remove(job_ref_.own(kind, kube::metadata_text(object, "name")), kube::metadata_text(object, "uid"));
    if (!removed && removed.error().code != ErrorCode::kNotFound && removed.error().code != ErrorCode::kConflict)
      return log_warning("failed to delete what belongs to a job", {{"error", removed.error().message}}), false;
  }
  return true;
}

void JobRemoval::remove_finalizer() const {
  if (auto removed = kube::remove_finalizer(client_, job_ref_.at, job_ref_.uid, std::string(names::kFinalizer));
      !removed)
    log_warning("failed to remove the finalizer", {{"job", job_ref_.key()}, {"error", removed.error().message}});
}

}  // namespace bsp::reconcile
