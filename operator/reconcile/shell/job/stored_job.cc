#include "operator/reconcile/shell/job/stored_job.h"

#include <algorithm>
#include <format>
#include <utility>
#include <vector>

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/pods/lost_pods.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/stored.h"
#include "operator/reconcile/shell/raw_condition.h"

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
  stands_still_ = false;
  const auto stored = parts_.shell.cache.get(parts_.job.at);
  if (!stored || kube::metadata_text(*stored, "uid") != parts_.job.uid) return nullptr;
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

void StoredJob::reject(const kube::Object& object, const Error& error) {
  if (kube::is_being_deleted(object)) return remove();
  if (never_begun(object) && pods().empty()) return fail(object, error);
  stands_still_ = true;
  named_ = parts_.job.named();
  named_.metadata.creation_timestamp = from_rfc3339(kube::metadata_text(object, "creationTimestamp"));
  write_condition(parts_, {.type = kUnreadable,
                           .on = true,
                           .reason = kUnreadable,
                           .message = std::format(
                               "{}; this operator is version {}. Until it can read the job it leaves its pods as they "
                               "are: install a version that can, or correct the field",
                               error.message, BSP_VERSION)});
}

// The API server has admitted it, but it is invalid: its status says why, once.
void StoredJob::fail(const kube::Object& object, const Error& error) {
  Observed o;
  o.now = SystemClock{}.now();
  o.job.metadata.generation = count_at<std::int64_t>(part_at(object, "metadata"), "generation");
  const json& before = part_at(object, "status");
  crds::BspJobStatus status;
  status.phase = crds::JobPhase::kFailed;
  status.reason = kInvalidJob;
  status.message = error.message;
  status.completion_time = o.now;
  status.observed_generation = o.job.metadata.generation;
  if (text_at(before, "reason") == status.reason && text_at(before, "message") == status.message) return;
  refresh_status(o, status);
  kube::Object next = object;
  next["status"] = json();
  to_json(next["status"], status);
  log_info("a BSPJob is invalid", {{"job", parts_.job.key()}, {"error", error.message}});
  if (auto updated = parts_.shell.client.update_status(next)) parts_.shell.cache.put(*updated);
}

// As the kernel removes a job that it can read.
void StoredJob::remove() {
  const bool makes_pods = !pods_.being_made().empty();  // before they are read
  std::vector<kube::Object> left = pods();
  const auto is_lost = [&](const kube::Object& pod) {
    const auto node = parts_.shell.cache.get({kNode, "", text_at(part_at(pod, "spec"), "nodeName")});
    return kube::is_being_deleted(pod) && node_state(node ? &*node : nullptr) != NodeState::kAnswers;
  };
  const bool over = !makes_pods && std::ranges::all_of(left, is_lost);
  std::erase_if(left, [](const kube::Object& pod) { return kube::is_being_deleted(pod); });
  pods_.remove(std::move(left));
  if (over) removal_.finish();
}

std::vector<kube::Object> StoredJob::pods() const {
  std::vector<kube::Object> pods = parts_.shell.cache.find(kPod, kByJob, parts_.job.key());
  std::erase_if(pods, [&](const kube::Object& pod) { return !parts_.job.owns(pod); });
  return pods;
}

}  // namespace bsp::reconcile
