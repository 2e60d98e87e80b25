// The scheduler of one job over all its attempts, and which of its calls are reported.
//
// With short supersteps there are many calls a second, and reporting one costs a write of the whole status and an event. So
// a call that moves no rank (or wants to, after the last such call began no wave) is held back until the last report is old
// enough; then the newest is reported, with the number of those left out. What a call changes for later ones (alpha, D and
// P) may be lost with the operator: the next leader goes on from what was stored last and decides the same a little earlier
// or later.
#pragma once

#include <memory>
#include <optional>

#include "operator/reconcile/kernel/rescheduling/rescheduling.h"

namespace bsp::reconcile {

class Advisor {
 public:
  struct Options {
    Duration calls{};      // least time between two reports of calls that move no rank
    bool records = false;  // attach its record to each call
  };
  explicit Advisor(const Options& options) : options_(options) {}

  // While the ranks of this attempt run in an open epoch; drops the state of an earlier attempt.
  void begin(const crds::BspJob& job);
  // While they don't.
  void forget() { rescheduler_.reset(), call_.reset(); }
  [[nodiscard]] bool active() const { return rescheduler_ != nullptr; }
  // See Rescheduler::add().
  bool add(const wire::RankReport& report) { return rescheduler_->add(report); }
  [[nodiscard]] std::uint64_t since(std::uint32_t rank) const { return rescheduler_->collector().since(rank); }
  // See Collector::begin_round().
  std::uint64_t begin_round() { return rescheduler_->begin_round(); }
  [[nodiscard]] double superstep_seconds() const { return rescheduler_->superstep_seconds(); }

  // What follows from the reports that were added. Returns the same call until it is stored().
  Advice advance(const Observed& o);
  void stored() { call_.reset(); }

 private:
  std::optional<Decided> next_call(const Observed& o, Advice& advice);

  const Options options_;
  std::unique_ptr<Rescheduler> rescheduler_;
  std::uint32_t attempt_ = 0;           // of rescheduler_
  std::optional<Decided> call_;         // not stored yet
  std::optional<Decided> held_;         // the newest that moves no rank, until it may be reported
  std::uint64_t unreported_ = 0;        // calls since the last report
  std::uint32_t tried_wave_ = ~0u;      // status.wave at the last report of a call that wants moves
  std::optional<SteadyTime> reported_;  // the last time
};

}  // namespace bsp::reconcile
