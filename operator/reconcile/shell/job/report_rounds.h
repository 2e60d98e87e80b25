// The supersteps' reports, for the scheduler: asked for from the Set Managers in rounds.
#pragma once

#include <chrono>

#include "operator/reconcile/kernel/rescheduling/advisor.h"
#include "operator/reconcile/shell/links/links.h"

namespace bsp::reconcile {

class ReportRounds {
 public:
  explicit ReportRounds(Advisor& advisor) : advisor_(advisor) {}

  // Hands to the scheduler what has come. Also begins and ends its work with the ranks'.
  void take(const crds::BspJob& job, Sidecars& sidecars);
  // Begins a round if one is due.
  void ask(const Observed& o, Sidecars& sidecars);
  [[nodiscard]] Duration until_next() const { return next_ - std::chrono::steady_clock::now(); }

 private:
  Advisor& advisor_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace bsp::reconcile
