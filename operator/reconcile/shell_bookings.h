// The one object that holds what waves have booked (bookings.h): a ConfigMap, read once and then known by its writers.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "operator/kinds.h"
#include "operator/reconcile/bookings.h"

namespace bsp::reconcile {

// Thread-safe. Whoever else writes the object (an operator that has just lost its leadership) is noticed by its
// resourceVersion when something is booked, which is the only time that matters.
class BookingStore {
 public:
  // `client` has to outlive this.
  BookingStore(kube::Client& client, std::string name_space, std::string name)
      : client_(client), at_{kConfigMap, std::move(name_space), std::move(name)} {}

  // Without what has expired. Nothing is booked as far as anybody knows if it can't be read; book() fails then.
  Bookings read(Time now);
  // In the place of what the job had booked. kConflict if anybody has booked since `seen`: decide again.
  Result<void> book(const Bookings& seen, const std::string& job, Booking booking, Time now);
  // What the job has booked, if anything is; at no request if nothing is.
  Result<void> release(const std::string& job, Time now);
  Result<void> renew(const std::string& job, Time now);

 private:
  // With the lock held.
  Result<void> load();
  Result<void> write(const Bookings& next);
  Result<void> change(const std::string& job, Time now, const std::function<bool(Bookings&)>& make);

  kube::Client& client_;
  const kube::Key at_;
  std::mutex mutex_;
  std::optional<Bookings> known_;
  kube::Object object_;  // of known_; null: there is none yet
};

}  // namespace bsp::reconcile
