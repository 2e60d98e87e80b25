// What the waves of a job were expected to gain, and have gained: the supersteps before a wave against those after it, less what those
// that stayed saw in the same time (observe/control.h). What can't be told from noise is said so; the job's gain counts only its pause.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "operator/observe/collector.h"
#include "operator/observe/control.h"
#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/kernel/rescheduling/scheduler_state.h"

namespace bsp::reconcile {

// By the cost model: nothing is predicted of what people ask for.
bool was_decided(const migrate::Wave& wave);

class Gains {
 public:
  static constexpr std::size_t kCompared = 10;  // supersteps on either side of a wave, at most
  static constexpr std::size_t kStayed = 32;    // ranks that stay, whose computing tells what the machine did meanwhile
  using History = std::deque<observe::SuperstepTimes>;

  // `counted`, `baseline`: SchedulerState's.
  Gains(const crds::BspJobStatus& status, double counted, std::optional<Baseline> baseline);

  // A plan that moves ranks gains so much over so many supersteps.
  void predict(double seconds, double supersteps);
  // Unless that is done: what supersteps took until this wave, and over how many of them its gain counts. `alpha`: of the window.
  // `counted`: `history` has instructions, and not CPU time.
  void begin(const migrate::Wave& wave, const History& history, const crds::BspJobStatus& status, std::uint64_t alpha,
             bool counted = false);
  // The wave has ended; supersteps from here on are measured in the new mapping.
  void compare_from(std::uint64_t superstep) { baseline_->after = superstep; }
  // There is nothing to compare.
  void forget() { baseline_.reset(); }
  // Of the last wave, once enough supersteps have passed; at most once. `ending`: there will be no more of them, so the
  // comparison uses what there is, if that is at least two.
  std::vector<RealisedGain> realised(const crds::BspJobStatus& status, const History& history, bool ending);

  void store(crds::BspJobStatus& status) const;
  [[nodiscard]] double counted() const { return counted_; }
  [[nodiscard]] const std::optional<Baseline>& baseline() const { return baseline_; }

 private:
  // What rank computed before the wave, had its work been that of after it.
  [[nodiscard]] double with_work_of(const observe::MeanTimes& mean, std::uint32_t rank, double seconds) const;
  // What tells the job's gain.
  [[nodiscard]] observe::JobTimes times_of_job(const crds::BspJobStatus& status, const migrate::Wave& wave,
                                               const observe::MeanTimes& mean) const;

  double counted_ = 0;  // supersteps over which the last plan that moves counts its gain; 0: none yet
  std::optional<Baseline> baseline_;
  double predicted_ = 0, realised_ = 0;  // sums, s
  double error_ = 0;                     // of realised_, s: waves err independently of each other
  bool any_ = false;
};

}  // namespace bsp::reconcile
