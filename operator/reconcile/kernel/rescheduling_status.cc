// What the scheduler shows in the status, where a fresh operator finds it again, and what its waves have gained.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/core/significant.h"
#include "operator/observe/snapshot.h"
#include "operator/reconcile/kernel/rescheduling.h"

namespace bsp::reconcile {

void Rescheduler::store(crds::BspJobStatus& status, const Observed& o) const {
  if (o.job.spec.rescheduling.mode != crds::ReschedulingMode::kOff) {
    status.alpha = static_cast<std::uint32_t>(window_->cadence().alpha);
    status.d = window_->cadence().d;
  }
  const auto& history = collector_.history();
  if (!history.empty()) {
    const auto last = history.back().superstep;
    const auto mean = observe::mean_times(history, last >= kCompared ? last - kCompared + 1 : 0, last);
    status.imbalance = significant(history.back().imbalance, 4);
    for (auto& place : status.ranks) {
      const std::size_t i = place.rank.value;
      if (i >= mean->compute_seconds.size()) continue;
      place.compute_seconds = mean->compute_seconds[i];
      place.time_seconds = mean->seconds;
    }
  }
  if (!edge_.call.empty()) status.superstep_edge = edge_;
  const std::map<std::string, double> of_core = speeds_of_cores(o), nominal = observe::nominal_speeds(o.nodes, of_core);
  std::map<std::string, crds::CalibrationSource> rests_on;
  for (const auto& [set, speed] : nominal) {
    using enum crds::CalibrationSource;
    const bool measured = calibration_.cpu(set, nominal).measured;
    if (work_.unit() == observe::WorkUnit::kInstructions)
      rests_on[set] = measured ? kCounted : of_core.contains(set) ? kCalibrated : kAssumed;
    if (work_.unit() == observe::WorkUnit::kCpuTime)
      rests_on[set] = work_.confirmed(set) ? kInferred : work_.calibrated(set) ? kCalibrated : kAssumed;
  }
  status.calibration = calibration_.to_status(nominal, rests_on);
  std::ranges::move(benchmarks_.to_status(), std::back_inserter(status.calibration));
  status.rescheduler =
      to_json(SchedulerState{state_, wave_seen_, counted_, work_.to_json(), factors_.to_json(), baseline_, moves_});
  if (predicted_sum_ != 0) status.predicted_gain_seconds = significant(predicted_sum_, 6);
  if (any_gain_) status.realised_gain_seconds = significant(realised_sum_, 6);
}

std::vector<RealisedGain> Rescheduler::realised(const crds::BspJobStatus& status, bool ending) {
  if (!baseline_ || baseline_->after == 0 || baseline_->compute.empty()) return {};
  const auto mean = observe::mean_times(collector_.history(), baseline_->after, ~0ull);
  if (!mean || mean->supersteps < (ending ? 2 : kCompared)) return {};
  const auto wave = stored_wave(status);
  if (!wave || !*wave || (*wave)->number != baseline_->wave) return baseline_.reset(), std::vector<RealisedGain>{};
  const double pause = (*wave)->pause.total_ms * 1e-3;
  const auto alpha = static_cast<double>(std::max<std::uint64_t>(1, baseline_->alpha));
  realised_sum_ += (baseline_->seconds - mean->seconds) * alpha - pause;
  any_gain_ = true;
  std::vector<RealisedGain> out;
  for (const migrate::Move& move : (*wave)->moves)
    if (const auto before = baseline_->compute.find(move.rank);
        before != baseline_->compute.end() && move.rank < mean->compute_seconds.size())
      out.push_back({.migration = move.migration,
                     .seconds = significant((before->second - mean->compute_seconds[move.rank]) * alpha - pause, 6),
                     .superstep_before = baseline_->seconds,
                     .superstep_after = mean->seconds});
  baseline_.reset();
  return out;
}

}  // namespace bsp::reconcile
