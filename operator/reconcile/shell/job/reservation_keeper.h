// A job's reservation: made before what needs it is stored, renewed as long as its pods find their nodes or a wave is under
// way, and then released.
#pragma once

#include "operator/reconcile/shell/job/job_parts.h"
#include "operator/reconcile/shell/trouble.h"

namespace bsp::reconcile {

class ReservationKeeper {
 public:
  explicit ReservationKeeper(const JobParts& parts) : store_(parts.shell.reservations), job_ref_(parts.job) {}

  // Reserves the slots that the change needs, so that every later decision sees them taken. kConflict: another job has
  // reserved since this one was observed.
  Result<void> reserve(const Observed& o, const StatusChange& change);
  // Other jobs need not wait for the rest of this reconcile.
  void reserve_nothing() { store_.reconciled(job_ref_.key()); }
  void keep(const Work& work);

 private:
  ReservationStore& store_;
  const JobRef job_ref_;
  Trouble not_reserved_;
};

}  // namespace bsp::reconcile
