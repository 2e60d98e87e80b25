// Reservation by load exchange (operator/exchange) instead of an object: several operators, each with the jobs of a
// namespace of its own, move ranks onto the same nodes and report to each other what theirs request there.
//
// Load and unit. A member of the group is an operator; what it holds of a resource is the sum over its namespace:
//
//     "cpu <node>"     thousandths of a core that its pods on the node, and its targets planned for it, request
//     "memory <node>"  bytes of the same, and of the checkpoints of targets whose waves are under way (move_memory.h)
//     "pods <node>"    their number
//     "moves <set>"    its ranks that are moving into the Set now (for the limits of moves at once)
//
// By node, because a target has to fit on one; and not in slots, because a slot of one job is not that of another. A
// target counts as planned from its reservation until the scheduler has placed it, then as the pod it is. With Naive it
// counts only then: that mechanism reports work that has arrived.
//
//     read ─> decide on what the group is known to hold ─> reserve ┬─ the view has stayed the same: assigned ─> confirmed
//       ^                                                        │  by all members: the wave may be stored
//       └────────── decide again, on that view ──────────────────┴─ it has changed: the turn to decide is kept
//
// With Snapshot the view is made when an operator reserves, so that none takes what another has. A move is refused for lack of
// capacity on the last view, which is requested again every second while jobs are reconciled.
//
// The turn (with Snapshot: the permission of all others) ends with the assignment, or with the reconcile of the job. A
// wave's slots are released when it has ended; nothing has to be renewed, since a reservation lives no longer than this
// process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/exchange/link_group.h"
#include "operator/reconcile/capacity/stores/exchange_place.h"
#include "operator/reconcile/capacity/stores/store.h"
#include "operator/reconcile/capacity/stores/usage.h"

namespace bsp::reconcile {

class ExchangeReservations final : public ReservationStore {
 public:
  // `usage` has to outlive this, and has to know of a change of pods before pods_changed() is called.
  ExchangeReservations(ExchangePlace place, const NodeUsage& usage);

  Reservations read(Time now) override;
  // kUnavailable, kTimeout: the others do not answer; a member that stays silent is lost in the end.
  Result<void> reserve(const Reservations& seen, const std::string& job, Reservation reservation, Time now) override;
  Result<void> release(const std::string& job, Time now) override;
  Result<void> renew(const std::string& /*job*/, Time /*now*/) override { return {}; }
  void begin() override;
  void pods_changed(const std::string& node) override;
  void reconciled(const std::string& job) override;

 private:
  // The turn to decide, with the view it came with.
  struct Turn {
    exchange::LinkGroup::Decision decision;
    Reservations seen;
  };

  // With the lock held.
  Reservations reservations(const exchange::View& view);
  Result<void> assign(std::unique_lock<std::mutex>& lock, const std::string& job, Reservation reservation);
  void end_turn();
  std::map<std::string, double> loads(const std::set<std::string>& nodes) const;
  std::set<std::string> planned_nodes() const;
  void report(const std::set<std::string>& nodes);
  std::uint32_t number_of(const std::string& resource);

  const ExchangePlace place_;
  exchange::LinkGroup& group_;
  const NodeUsage& usage_;
  const bool reports_plans_;
  std::mutex mutex_;
  std::condition_variable turn_ended_;
  std::map<std::string, Reservation> own_;  // by job
  std::map<std::string, double> reported_;  // by resource: what the group counts as ours
  std::vector<std::string> names_;          // of the group's resources, as far as they have been seen
  std::map<std::string, std::uint32_t> numbers_;
  std::string deciding_;  // the job whose turn it is or is to be; "": none
  std::optional<Turn> turn_;
  std::uint64_t turns_ = 0;
  bool joined_ = false;
  std::chrono::steady_clock::time_point refreshed_{};
};

}  // namespace bsp::reconcile
