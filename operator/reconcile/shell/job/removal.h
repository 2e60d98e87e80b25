// How a job goes: with everything that belongs to it.
#pragma once

#include <memory>

#include "operator/reconcile/shell/job/job_parts.h"

namespace bsp::reconcile {

class JobRemoval {
 public:
  explicit JobRemoval(const JobParts& parts)
      : client_(parts.shell.client),
        collects_garbage_(parts.shell.options.collects_garbage),
        job_ref_(parts.job),
        calls_(parts.calls) {}

  // Deletes a finished job whose time to live is over; its finalizer remains to be removed.
  void delete_job() const;
  // Of a job that is being deleted, once no pod is left: removes what belongs to it, then its finalizer. To be called again
  // until the job is gone.
  void finish() const;
  void remove_finalizer() const;

 private:
  [[nodiscard]] bool remove_belongings(const kube::Kind& kind) const;  // false: some are left

  kube::Client& client_;
  const bool collects_garbage_;
  const JobRef job_ref_;
  const std::shared_ptr<JobCalls> calls_;
};

}  // namespace bsp::reconcile
