#include "operator/reconcile/shell/job/workloads.h"

#include "operator/kube/cache.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"

namespace bsp::reconcile {
namespace {

constexpr std::chrono::seconds kAgain{10};

kube::Key key_of_workload(const JobRef& ref) { return ref.own(kWorkload, workload_name({ref.at.name, ref.uid})); }

Result<kube::Object> send(kube::Client& client, const kube::Key& at, const WorkloadWrites& writes) {
  if (!writes.create.is_null()) return client.create(writes.create);
  if (!writes.spec.is_null()) {
    BSP_TRY(kube::Object now, client.get(at));  // the cache has only some of its fields
    now["spec"].merge_patch(writes.spec);
    return client.update(now);
  }
  return client.patch_status(at, writes.status);
}

}  // namespace

std::optional<Queued> queued_job(const kube::Cache& cache, const JobRef& ref, const crds::BspJob& job) {
  const auto queue = job.metadata.labels.find(std::string(kQueueLabel));
  if (queue == job.metadata.labels.end() || queue->second.empty()) return std::nullopt;
  auto workload = cache.get(key_of_workload(ref));
  return Queued{queue->second, workload ? std::move(*workload) : kube::Object()};
}

void WorkloadWriter::write(const WorkloadWrites& writes) {
  if (writes == WorkloadWrites{} || std::chrono::steady_clock::now() < again_->load()) return;
  calls_->once("write the Workload", [&client = client_, &cache = cache_, at = key_of_workload(ref_), events = events_,
                                      again = again_, writes] {
    auto written = send(client, at, writes);
    // Another has written it meanwhile: the next reconcile decides on what it is now.
    if (!written && written.error().code == ErrorCode::kConflict) written = client.get(at);
    if (written) return cache.put(*written);
    again->store(std::chrono::steady_clock::now() + kAgain);
    if (written.error().code == ErrorCode::kNotFound) return cache.drop(at);
    events.add({"Warning", "WorkloadRefused", "Kueue's Workload can't be written: " + written.error().message});
  });
}

}  // namespace bsp::reconcile
