// How long a job has been in its present state: what its limits count.
//
//   startTime, completionTime   spec.runPolicy counts from them as Kubernetes does for a Job, whoever is leader. The
//                               stored time is read once, when this operator first sees it: a clock that is five
//                               minutes off shortens or extends the limit by that, and setting it later changes nothing.
//   phase Starting, a wave      limits of ours, from when this operator first saw them (operator/migrate/contact.h)
#pragma once

#include <string>

#include "operator/migrate/contact.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

class JobClocks {
 public:
  // Fills in the durations of Observed. Call it in each reconcile, with job, now and steady set.
  void fill(Observed& o);

 private:
  class Elapsed {
   public:
    // `before`: how long it had been so when it was first seen.
    Duration of(const std::string& what, Duration before, SteadyTime now);

   private:
    std::string what_;
    Duration before_{};
    SteadyTime met_{};
  };
  Elapsed started_, ended_, starting_, start_counts_, refused_, restarting_, draining_, blank_, ahead_, set_, pending_,
      suspending_, reclaiming_, resizing_;
  migrate::Contact wave_;
};

}  // namespace bsp::reconcile
