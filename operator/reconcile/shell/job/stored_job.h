// The job as the cache has it, parsed and validated.
//
// One that can't be read may be of another version of the operator, or edited by hand: its condition Unreadable says so, and
// its pods and sidecars are left as they are until it can be read. Only its deletion goes on. One that has never begun fails.
#pragma once

#include <memory>
#include <vector>

#include "operator/reconcile/shell/job/job_parts.h"
#include "operator/reconcile/shell/job/pod_keeper.h"
#include "operator/reconcile/shell/job/removal.h"

namespace bsp::reconcile {

class StoredJob {
 public:
  StoredJob(const JobParts& parts, PodKeeper& pods, const JobRemoval& removal)
      : parts_(parts), pods_(pods), removal_(removal) {}

  // nullptr if it is gone or can't be read.
  const crds::BspJob* read();
  // It was there when it was read last, and nothing may be done about it.
  [[nodiscard]] bool stands_still() const { return stands_still_; }
  // What of it can be read for certain, of one that stands still.
  [[nodiscard]] const crds::BspJob& named() const { return named_; }
  // As it was last read; nullptr after release().
  [[nodiscard]] const crds::BspJob* last() const { return job_.get(); }
  // It is parsed again when it is needed: of a thousand jobs most wait or have ended.
  void release() { job_.reset(); }

 private:
  void reject(const kube::Object& object, const Error& error);
  void fail(const kube::Object& object, const Error& error);
  void remove();
  [[nodiscard]] std::vector<kube::Object> pods() const;

  const JobParts& parts_;
  PodKeeper& pods_;
  const JobRemoval& removal_;
  bool stands_still_ = false;
  crds::BspJob named_;
  std::unique_ptr<const crds::BspJob> job_;
};

}  // namespace bsp::reconcile
