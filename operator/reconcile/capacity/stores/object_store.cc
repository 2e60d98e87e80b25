#include "base/core/counted.h"
#include "operator/reconcile/capacity/stores/store.h"

#include <format>
#include <utility>

#include "crds/names.h"

namespace bsp::reconcile {
namespace {
constexpr int kReserveTries = 8;
constexpr std::size_t kMostBytes = 1'000'000;        // of the MiB that an API server lets a ConfigMap have
constexpr auto kPatience = std::chrono::seconds(1);  // for the request of another job
}  // namespace

Result<void> ObjectReservations::load() {
  auto object = client_.get(at_);
  if (!object && object.error().code != ErrorCode::kNotFound)
    return std::unexpected(object.error().in("reading the reservations"));
  object_ = object ? std::move(*object) : kube::Object();
  know(reservations_from_json(object_));
  return {};
}

void ObjectReservations::know(Reservations reservations) {
  const std::lock_guard lock(mutex_);
  shown_ = reservations;
  known_ = std::move(reservations);
}

// Writes under the known version; kConflict if there is a newer one, which then becomes the known one.
Result<void> ObjectReservations::write(const Reservations& next) {
  const bool there = !object_.is_null();
  kube::Object object = there ? object_ : kube::Object{{"apiVersion", at_.kind.api_version}, {"kind", at_.kind.kind}};
  if (!there)
    object["metadata"] = {{"name", at_.name},
                          {"namespace", at_.name_space},
                          {"labels", {{"app.kubernetes.io/name", names::kOperatorIdentity}}}};
  const std::size_t before = there ? object["data"].dump().size() : 0;
  object["data"] = reservation_data(next);
  // The server would refuse it with words that name no job; the jobs that have reserved keep what they have.
  if (const std::size_t bytes = object["data"].dump().size(); bytes > kMostBytes && bytes >= before)
    return fail(
        ErrorCode::kNoSpace,
        std::format("the reservations of {} would take {} bytes, and a ConfigMap holds {}: this job waits until "
                    "waves or starts of others have ended",
                    counted(next.of_job.size(), "job"), bytes, kMostBytes),
        true);
  auto written = there ? client_.update(object) : client_.create(object);
  if (written) {
    object_ = std::move(*written);
    know(reservations_from_json(object_));
    return {};
  }
  known_.reset();
  const ErrorCode code = written.error().code;
  if (code != ErrorCode::kConflict && code != ErrorCode::kNotFound)
    return std::unexpected(written.error().in("writing the reservations"));
  BSP_CHECK_OK(load());
  return fail(ErrorCode::kConflict, "another job has reserved slots meanwhile", true);
}

Reservations ObjectReservations::read(Time now) {
  // A reservation on a version older than the known one is refused.
  if (const std::unique_lock writing(writing_, std::try_to_lock); writing && !known_) (void)load();
  const std::lock_guard lock(mutex_);
  Reservations reservations = shown_.value_or(Reservations{});
  drop_expired(reservations, now);
  return reservations;
}

Result<void> ObjectReservations::reserve(const Reservations& seen, const std::string& job, Reservation reservation,
                                         Time now) {
  const std::unique_lock writing(writing_, kPatience);
  if (!writing) return fail(ErrorCode::kUnavailable, "another job's slots are being reserved", true);
  if (!known_) BSP_CHECK_OK(load());
  if (known_->version != seen.version)
    return fail(ErrorCode::kConflict, "another job has reserved slots meanwhile", true);
  Reservations next = *known_;
  drop_expired(next, now);
  next.of_job[job] = std::move(reservation);
  return write(next);
}

Result<void> ObjectReservations::change(const std::string& job, Time now,
                                        const std::function<bool(Reservations&)>& make) {
  {
    // Most jobs have no reservation, so they don't wait for a job that makes one.
    const std::lock_guard lock(mutex_);
    if (shown_ && !shown_->of_job.contains(job)) return {};
  }
  const std::unique_lock writing(writing_, kPatience);
  if (!writing) return fail(ErrorCode::kUnavailable, "another job's slots are being reserved", true);
  for (int tries = 1;; ++tries) {
    if (!known_) BSP_CHECK_OK(load());
    Reservations next = *known_;
    if (!next.of_job.contains(job) || !make(next)) return {};
    drop_expired(next, now);
    auto written = write(next);
    if (written || written.error().code != ErrorCode::kConflict || tries == kReserveTries) return written;
  }
}

Result<void> ObjectReservations::release(const std::string& job, Time now) {
  return change(job, now, [&](Reservations& reservations) { return reservations.of_job.erase(job) != 0; });
}

Result<void> ObjectReservations::renew(const std::string& job, Time now) {
  return change(job, now, [&](Reservations& reservations) {
    Reservation& reservation = reservations.of_job[job];
    if (!is_to_be_renewed(reservation, now)) return false;
    reservation.until = now + kReservationKept;
    return true;
  });
}

}  // namespace bsp::reconcile
