// For how long a job has been as it is: what its limits are counted on.
//
//   startTime, completionTime   spec.runPolicy counts from them as Kubernetes does with a Job, whoever is leader. The
//                               stored time is believed once, when this operator meets it: a clock that is five minutes
//                               off makes the limit so much shorter or longer, one that is set later changes nothing.
//   phase Starting, a wave      limits of ours: from this operator's first look (operator/migrate/contact.h)
#pragma once

#include <string>

#include "operator/migrate/contact.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

class JobClocks {
 public:
  // Fills what Observed has of it. To be called at each look, with job, now and steady.
  void look(Observed& o);

 private:
  class Elapsed {
   public:
    // `before`: how long it had been so already when it was met.
    Duration of(const std::string& what, Duration before, SteadyTime now);

   private:
    std::string what_;
    Duration before_{};
    SteadyTime met_{};
  };
  Elapsed started_, ended_, starting_;
  migrate::Contact wave_;
};

}  // namespace bsp::reconcile
