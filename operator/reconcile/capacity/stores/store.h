// Where shells keep the reservations of waves (reservations.h): one interface, two implementations.
//
//   ObjectReservations    a ConfigMap that all write under its resourceVersion; the default
//   ExchangeReservations  a load exchange between operators that each manage a namespace (exchange_store.h)
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "operator/kinds.h"
#include "operator/reconcile/capacity/reservations.h"

namespace bsp::reconcile {

// Thread-safe. Within one reconcile: read(), decide, reserve(); after kConflict again.
class ReservationStore {
 public:
  ReservationStore() = default;
  virtual ~ReservationStore() = default;
  ReservationStore(const ReservationStore&) = delete;
  ReservationStore& operator=(const ReservationStore&) = delete;

  // Without what has expired. Empty if they can't be read; reserve() fails then.
  virtual Reservations read(Time now) = 0;
  // Replaces the job's reservation. kConflict if another job has reserved since `seen`: decide again.
  virtual Result<void> reserve(const Reservations& seen, const std::string& job, Reservation reservation, Time now) = 0;
  // The job's reservation, if it has one; costs no request if it has none.
  virtual Result<void> release(const std::string& job, Time now) = 0;
  virtual Result<void> renew(const std::string& job, Time now) = 0;

  // For an exchange: every object has been seen once. Every worker calls it.
  virtual void begin() {}
  // What pods ask for on that node may have changed.
  virtual void pods_changed(const std::string& /*node*/) {}
  // The job reserves nothing on what it has read, or its reconcile has ended.
  virtual void reconciled(const std::string& /*job*/) {}
};

// In one object, read once and then known by its writers. Whoever else writes it (an operator that has just lost its
// leadership) is noticed by its resourceVersion when something is reserved, which is the only time that matters.
class ObjectReservations final : public ReservationStore {
 public:
  // `client` has to outlive this.
  ObjectReservations(kube::Client& client, std::string name_space, std::string name)
      : client_(client), at_{kConfigMap, std::move(name_space), std::move(name)} {}

  Reservations read(Time now) override;
  Result<void> reserve(const Reservations& seen, const std::string& job, Reservation reservation, Time now) override;
  Result<void> release(const std::string& job, Time now) override;
  Result<void> renew(const std::string& job, Time now) override;

 private:
  // With `writing_` held.
  Result<void> load();
  void know(Reservations reservations);
  Result<void> write(const Reservations& next);
  Result<void> change(const std::string& job, Time now, const std::function<bool(Reservations&)>& make);

  kube::Client& client_;
  const kube::Key at_;
  std::timed_mutex writing_;           // held over requests
  std::mutex mutex_;                   // of shown_, and not held over requests: a write that hangs blocks no reader
  std::optional<Reservations> shown_;  // the last known
  std::optional<Reservations> known_;
  kube::Object object_;  // of known_; null: there is none yet
};

}  // namespace bsp::reconcile
