#include "operator/reconcile/capacity/stores/store.h"

#include <utility>

#include "crds/names.h"

namespace bsp::reconcile {
namespace {
constexpr int kBookingTries = 8;
constexpr auto kPatience = std::chrono::seconds(1);  // with the request of another job
}  // namespace

Result<void> ObjectBookings::load() {
  auto object = client_.get(at_);
  if (!object && object.error().code != ErrorCode::kNotFound)
    return std::unexpected(object.error().in("reading what is booked"));
  object_ = object ? std::move(*object) : kube::Object();
  know(bookings_from_json(object_));
  return {};
}

void ObjectBookings::know(Bookings bookings) {
  const std::lock_guard lock(mutex_);
  shown_ = bookings;
  known_ = std::move(bookings);
}

// Under the version that is known; kConflict if another is there by now, and then that one is known.
Result<void> ObjectBookings::write(const Bookings& next) {
  const bool there = !object_.is_null();
  kube::Object object = there ? object_ : kube::Object{{"apiVersion", at_.kind.api_version}, {"kind", at_.kind.kind}};
  if (!there)
    object["metadata"] = {{"name", at_.name},
                          {"namespace", at_.name_space},
                          {"labels", {{"app.kubernetes.io/name", names::kOperatorIdentity}}}};
  object["data"] = booking_data(next);
  auto written = there ? client_.update(object) : client_.create(object);
  if (written) {
    object_ = std::move(*written);
    know(bookings_from_json(object_));
    return {};
  }
  known_.reset();
  const ErrorCode code = written.error().code;
  if (code != ErrorCode::kConflict && code != ErrorCode::kNotFound)
    return std::unexpected(written.error().in("booking room"));
  BSP_CHECK_OK(load());
  return fail(ErrorCode::kConflict, "somebody else has booked room meanwhile", true);
}

Bookings ObjectBookings::read(Time now) {
  // What is older than its writers know is refused when it is booked on.
  if (const std::unique_lock writing(writing_, std::try_to_lock); writing && !known_) (void)load();
  const std::lock_guard lock(mutex_);
  Bookings bookings = shown_.value_or(Bookings{});
  drop_expired(bookings, now);
  return bookings;
}

Result<void> ObjectBookings::book(const Bookings& seen, const std::string& job, Booking booking, Time now) {
  const std::unique_lock writing(writing_, kPatience);
  if (!writing) return fail(ErrorCode::kUnavailable, "room for another job's moves is being booked", true);
  if (!known_) BSP_CHECK_OK(load());
  if (known_->version != seen.version)
    return fail(ErrorCode::kConflict, "somebody else has booked room meanwhile", true);
  Bookings next = *known_;
  drop_expired(next, now);
  next.of_job[job] = std::move(booking);
  return write(next);
}

Result<void> ObjectBookings::change(const std::string& job, Time now, const std::function<bool(Bookings&)>& make) {
  {
    // Most jobs have booked nothing, and none of them waits for a job that books.
    const std::lock_guard lock(mutex_);
    if (shown_ && !shown_->of_job.contains(job)) return {};
  }
  const std::unique_lock writing(writing_, kPatience);
  if (!writing) return fail(ErrorCode::kUnavailable, "room for another job's moves is being booked", true);
  for (int tries = 1;; ++tries) {
    if (!known_) BSP_CHECK_OK(load());
    Bookings next = *known_;
    if (!next.of_job.contains(job) || !make(next)) return {};
    drop_expired(next, now);
    auto written = write(next);
    if (written || written.error().code != ErrorCode::kConflict || tries == kBookingTries) return written;
  }
}

Result<void> ObjectBookings::release(const std::string& job, Time now) {
  return change(job, now, [&](Bookings& bookings) { return bookings.of_job.erase(job) != 0; });
}

Result<void> ObjectBookings::renew(const std::string& job, Time now) {
  return change(job, now, [&](Bookings& bookings) {
    Booking& booking = bookings.of_job[job];
    if (!is_to_be_renewed(booking, now)) return false;
    booking.until = now + kBookingKept;
    return true;
  });
}

}  // namespace bsp::reconcile
