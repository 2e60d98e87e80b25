// The job as the cache has it, parsed and validated.
#pragma once

#include <memory>

#include "operator/reconcile/shell/job/job_parts.h"
#include "operator/reconcile/shell/job/pod_keeper.h"
#include "operator/reconcile/shell/job/removal.h"

namespace bsp::reconcile {

class StoredJob {
 public:
  StoredJob(const JobParts& parts, PodKeeper& pods, const JobRemoval& removal)
      : client_(parts.shell.client), cache_(parts.shell.cache), job_ref_(parts.job), pods_(pods), removal_(removal) {}

  // nullptr if it is gone, or invalid: then its status says why, and its pods are deleted.
  const crds::BspJob* read();
  // As it was last read; nullptr after release().
  [[nodiscard]] const crds::BspJob* last() const { return job_.get(); }
  // It is parsed again when it is needed: of a thousand jobs most wait or have ended.
  void release() { job_.reset(); }

 private:
  void reject(const kube::Object& object, const Error& error);
  void remove_pods();

  kube::Client& client_;
  kube::Cache& cache_;
  const JobRef job_ref_;
  PodKeeper& pods_;
  const JobRemoval& removal_;
  std::unique_ptr<const crds::BspJob> job_;
};

}  // namespace bsp::reconcile
