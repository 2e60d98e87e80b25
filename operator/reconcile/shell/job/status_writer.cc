#include "operator/reconcile/shell/job/status_writer.h"

#include <algorithm>

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/shell/metrics.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {
constexpr std::chrono::seconds kStartingProgress{1};
constexpr double kProgressBytesPerSecond = 16 << 10;
constexpr Duration kRarestProgress = 60s;
}  // namespace

// What differs from the stored object, if that is the one that was decided on: a decision is hundreds of KiB, and most writes
// change none.
Result<kube::Object> StatusWriter::write(const crds::BspJob& job, const crds::BspJobStatus& status) {
  crds::BspJob next = job;
  next.status = status;
  json object;
  to_json(object, next);
  const auto stored = cache_.get(job_.at);
  if (stored && kube::metadata_text(*stored, "resourceVersion") == job.metadata.resource_version) {
    const json& before = part_at(*stored, "status");
    if (auto changes = kube::merge_patch(before.is_object() ? before : json::object(), object["status"])) {
      if (changes->empty()) return *stored;
      return client_.patch_status(
          job_.at, {{"metadata", {{"resourceVersion", job.metadata.resource_version}, {"uid", job_.uid}}},
                    {"status", *changes}});
    }
  }
  return client_.update_status(object);
}

bool StatusWriter::store(const crds::BspJob& job, const crds::BspJobStatus& status) {
  const auto began = std::chrono::steady_clock::now();
  if (began < again_) return false;
  auto updated = write(job, status);
  if (!updated) {
    reconcile_retries.add({updated.error().code == ErrorCode::kConflict ? "conflict" : "refused"});
    if (updated.error().code != ErrorCode::kConflict && updated.error().code != ErrorCode::kNotFound) {
      // It would be refused again at once.
      again_ = std::chrono::steady_clock::now() + refusals_.next();
      log_warning("storing a status failed", {{"error", updated.error().message}});
    }
    // The object has changed meanwhile: decide again on what it is now.
    if (auto fresh = client_.get(job_.own(kBspJob, job.metadata.name))) cache_.put(*fresh);
    return false;
  }
  refusals_.reset();
  if (kube::metadata_text(*updated, "resourceVersion") != job.metadata.resource_version)
    stored_bytes_ = updated->dump().size();
  cache_.put(*updated);
  stored_ = std::chrono::steady_clock::now();
  return true;
}

Duration StatusWriter::until_next_try() const { return again_ - std::chrono::steady_clock::now(); }

// A write of progress costs as much as the object is long, in etcd and for every watcher, however little of it changes. So a
// large object is written less often.
//
// Nothing that the next leader needs waits for it: whatever something follows from is stored before that is done
// (StatusChange), with all the rest. Progress is what the sidecars report again (superstep, times, memory), and what a
// leader may have a little older: calibration and the state of decisions, which every stored decision brings up to date.
//
// While a job starts, its message says what it waits for, so it is written within a second.
bool StatusWriter::progress_is_due(crds::JobPhase phase) const {
  const Duration least =
      phase == crds::JobPhase::kStarting ? std::min<Duration>(progress_, kStartingProgress) : progress_;
  const Duration by_size =
      std::min<Duration>(kRarestProgress, from_seconds(static_cast<double>(stored_bytes_) / kProgressBytesPerSecond));
  return std::chrono::steady_clock::now() >= stored_ + std::max<Duration>(least, by_size);
}

}  // namespace bsp::reconcile
