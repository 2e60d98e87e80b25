// A job's Workload for Kueue (kernel/start/kueue.h), read from the cache and written off the worker.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "operator/reconcile/kernel/start/kueue.h"
#include "operator/reconcile/shell/job/job_parts.h"

namespace bsp::reconcile {

// nullopt: the job names no LocalQueue.
std::optional<Queued> queued_job(const kube::Cache& cache, const JobRef& ref, const crds::BspJob& job);

class WorkloadWriter {
 public:
  explicit WorkloadWriter(const JobParts& parts)
      : client_(parts.shell.client),
        cache_(parts.shell.cache),
        ref_(parts.job),
        calls_(parts.calls),
        events_(parts.events) {}

  void write(const WorkloadWrites& writes);

 private:
  kube::Client& client_;
  kube::Cache& cache_;
  const JobRef ref_;
  const std::shared_ptr<JobCalls> calls_;
  const EventQueue events_;
  // After a refusal; the call sets it, and may outlive the job.
  const std::shared_ptr<std::atomic<SteadyTime>> again_ = std::make_shared<std::atomic<SteadyTime>>();
};

}  // namespace bsp::reconcile
