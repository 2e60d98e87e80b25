// Events of one job, written off the worker, one after the other.
#pragma once

#include <memory>

#include "operator/reconcile/shell/call_pool.h"
#include "operator/reconcile/shell/job/events.h"
#include "operator/reconcile/shell/job/job_ref.h"

namespace bsp::reconcile {

// Copies are the same queue; it may be used from calls.
class EventQueue {
 public:
  EventQueue(kube::Client& client, JobRef job, std::shared_ptr<JobCalls> calls)
      : job_(std::move(job)), calls_(std::move(calls)), recorder_(std::make_shared<EventRecorder>(client)) {}
  void add(const Event& event) const;

 private:
  const JobRef job_;
  const std::shared_ptr<JobCalls> calls_;
  const std::shared_ptr<EventRecorder> recorder_;  // used by one call at a time
};

}  // namespace bsp::reconcile
