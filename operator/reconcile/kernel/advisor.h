// The scheduler of one job over all its attempts, and which of its calls are told.
//
// In short supersteps a call comes many times a second, and each that is told is a write of the whole status and an event. One
// that moves nobody (or wants to, where the last one that wanted to began no wave) waits until the last that was told is old
// enough, and the newest is told then, with their number. What a call changes for those after it, alpha, D and P, the next
// leader finds in whatever was stored last: it decides the same a little earlier or later, for nothing was done in between.
#pragma once

#include <memory>
#include <optional>

#include "operator/reconcile/kernel/rescheduling.h"

namespace bsp::reconcile {

class Advisor {
 public:
  struct Options {
    Duration calls{};      // between two calls that are told though they move nobody, at least
    bool records = false;  // each call comes with its record
  };
  explicit Advisor(const Options& options) : options_(options) {}

  // The ranks of this attempt run, in an open epoch; nothing of an attempt before stays.
  void attend(const crds::BspJob& job);
  // They don't.
  void forget() { rescheduler_.reset(), call_.reset(); }
  [[nodiscard]] bool attends() const { return rescheduler_ != nullptr; }
  // As Rescheduler has it.
  bool add(const wire::RankReport& report) { return rescheduler_->add(report); }
  [[nodiscard]] std::uint64_t since(std::uint32_t rank) const { return rescheduler_->collector().since(rank); }
  [[nodiscard]] double superstep_seconds() const { return rescheduler_->superstep_seconds(); }

  // What follows from all that was added. The same call again until it is stored().
  Advice advance(const Observed& o);
  void stored() { call_.reset(); }

 private:
  std::optional<Decided> next_call(const Observed& o, Advice& advice);

  const Options options_;
  std::unique_ptr<Rescheduler> rescheduler_;
  std::uint32_t attempt_ = 0;       // that rescheduler_ belongs to
  std::optional<Decided> call_;     // made, not stored yet
  std::optional<Decided> held_;     // the newest that moves nobody, until one may be told again
  std::uint64_t untold_ = 0;        // calls since one was told
  std::uint32_t tried_wave_ = ~0u;  // status.wave when a call that wants moves was told last
  std::optional<SteadyTime> told_;  // when one was last
};

}  // namespace bsp::reconcile
