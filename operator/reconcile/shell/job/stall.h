// A job whose reconciles fail by an exception or a failed check(): it rests, longer each time, and its condition Stalled
// says so.
#pragma once

#include <chrono>

#include "base/core/backoff.h"
#include "operator/reconcile/shell/job/job_parts.h"

namespace bsp::reconcile {

class Stall {
 public:
  explicit Stall(const JobParts& parts) : parts_(parts) {}

  // For how long the job still rests, whatever wakes it: it must not keep a worker from others. Negative: it doesn't.
  [[nodiscard]] Duration left() const { return until_ - std::chrono::steady_clock::now(); }
  // Returns for how long it rests.
  Duration begin(const Error& error);
  // `job`: as it was reconciled; null if it isn't known.
  void end(const crds::BspJob* job);

 private:
  const JobParts& parts_;
  Backoff rests_{std::chrono::milliseconds(200), std::chrono::seconds(30)};
  std::chrono::steady_clock::time_point until_{};
};

}  // namespace bsp::reconcile
