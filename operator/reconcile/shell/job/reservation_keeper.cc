#include "operator/reconcile/shell/job/reservation_keeper.h"

#include <utility>

#include "base/core/log.h"
#include "operator/reconcile/kernel/rescheduling/move_memory.h"

namespace bsp::reconcile {

namespace {
// More would outgrow what a ConfigMap holds; such a job starts as its pods find nodes.
constexpr std::size_t kMostOfAStart = 4096;
}  // namespace

Result<void> ReservationKeeper::reserve(const Observed& o, const StatusChange& change) {
  if (change.reserve.empty()) return reserve_nothing(), Result<void>();
  const bool start = change.status.phase == crds::JobPhase::kStarting;
  if (start && change.reserve.size() > kMostOfAStart) return {};
  Reservation reservation{.uid = job_ref_.uid,
                          .wave = change.status.wave,
                          .each = requests_of_rank(o.job.spec.pod_template, o.job.spec.sidecar.resources),
                          .checkpoint = start ? 0 : MoveCapacity(o).of_largest().checkpoint,
                          .slots = change.reserve,
                          .until = o.now + kReservationKept,
                          .start = start};
  auto reserved = store_.reserve(o.reservations, job_ref_.key(), std::move(reservation), o.now);
  if (reserved)
    not_reserved_.clear();
  else if (reserved.error().code != ErrorCode::kConflict && not_reserved_.is_news(reserved.error().message))
    log_warning("failed to reserve slots", {{"job", job_ref_.key()}, {"error", reserved.error().message}});
  return reserved;
}

void ReservationKeeper::keep(const Work& work) {
  const std::string mine = job_ref_.key();
  const Time now = SystemClock{}.now();
  const auto kept = work.moving || work.starting ? store_.renew(mine, now) : store_.release(mine, now);
  if (!kept && not_reserved_.is_news(kept.error().message))
    log_warning("failed to write a reservation", {{"job", mine}, {"error", kept.error().message}});
}

}  // namespace bsp::reconcile
