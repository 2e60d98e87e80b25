#include "operator/reconcile/shell/job/stored_job.h"

#include <utility>
#include <vector>

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/stored.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

Result<crds::BspJob> parse(const kube::Object& object) {
  BSP_TRY(crds::BspJob job, crds::bsp_job_from_json(object));
  BSP_CHECK_OK(crds::validate(job.spec));
  BSP_CHECK_OK(check_stored(job));
  return job;
}

}  // namespace

// Parsing an object costs more than deciding on it, and most reconciles find it unchanged.
const crds::BspJob* StoredJob::read() {
  const auto stored = cache_.get(job_ref_.at);
  if (!stored || kube::metadata_text(*stored, "uid") != job_ref_.uid) return nullptr;
  const std::string version = kube::metadata_text(*stored, "resourceVersion");
  if (job_ && !version.empty() && job_->metadata.resource_version == version) return job_.get();
  auto job = parse(*stored);
  if (!job) {
    reject(*stored, job.error());
    return nullptr;
  }
  job_ = std::make_unique<const crds::BspJob>(std::move(*job));
  return job_.get();
}

// The API server has admitted it, but it is invalid: its status says why, once. Its pods are deleted, since the operator
// won't reconcile them.
void StoredJob::reject(const kube::Object& object, const Error& error) {
  remove_pods();
  if (kube::is_being_deleted(object)) return removal_.remove_finalizer();
  Observed o;
  o.now = SystemClock{}.now();
  o.job.metadata.generation = count_at<std::int64_t>(part_at(object, "metadata"), "generation");
  const json& before = part_at(object, "status");
  crds::BspJobStatus status;
  status.phase = crds::JobPhase::kFailed;
  status.reason = "Invalid";
  status.message = error.message;
  status.completion_time = o.now;
  status.observed_generation = o.job.metadata.generation;
  if (text_at(before, "reason") == status.reason && text_at(before, "message") == status.message) return;
  refresh_status(o, status);
  kube::Object next = object;
  next["status"] = json();
  to_json(next["status"], status);
  log_info("a BSPJob is invalid", {{"job", job_ref_.key()}, {"error", error.message}});
  if (auto updated = client_.update_status(next)) cache_.put(*updated);
}

void StoredJob::remove_pods() {
  std::vector<kube::Object> pods;
  for (kube::Object& pod : cache_.find(kPod, kByJob, job_ref_.key()))
    if (job_ref_.owns(pod) && !kube::is_being_deleted(pod)) pods.push_back(std::move(pod));
  pods_.remove(std::move(pods));
}

}  // namespace bsp::reconcile
