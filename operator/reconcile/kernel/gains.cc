#include "operator/reconcile/kernel/gains.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/core/significant.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

bool was_decided(const migrate::Wave& wave) {
  return std::ranges::any_of(wave.moves, [](const migrate::Move& m) { return m.predicted_gain_seconds != 0; });
}

Gains::Gains(const crds::BspJobStatus& status, double counted, std::optional<Baseline> baseline)
    : counted_(counted),
      baseline_(std::move(baseline)),
      predicted_(status.predicted_gain_seconds.value_or(0)),
      realised_(status.realised_gain_seconds.value_or(0)),
      any_(status.realised_gain_seconds.has_value()) {}

void Gains::predict(double seconds, double supersteps) {
  predicted_ += seconds;
  counted_ = std::max(1.0, supersteps);
}

void Gains::begin(const migrate::Wave& wave, const History& history, const crds::BspJobStatus& status,
                  std::uint64_t alpha) {
  if (baseline_ && baseline_->wave == wave.number) return;
  baseline_ = Baseline{};
  baseline_->wave = wave.number;
  baseline_->alpha = alpha;
  // Gains are compared over as many supersteps as they were predicted over.
  if (const auto& decision = status.last_decision; decision && was_decided(wave))
    baseline_->alpha = counted_ > 0 ? static_cast<std::uint64_t>(std::llround(counted_)) : decision->alpha;
  if (history.empty()) return;
  const auto last = history.back().superstep;
  const auto mean = observe::mean_times(history, last >= kCompared ? last - kCompared + 1 : 0, last);
  if (!mean) return;
  baseline_->seconds = mean->seconds;
  for (const migrate::Move& move : wave.moves)
    if (move.rank < mean->compute_seconds.size()) baseline_->compute[move.rank] = mean->compute_seconds[move.rank];
}

std::vector<RealisedGain> Gains::realised(const crds::BspJobStatus& status, const History& history, bool ending) {
  if (!baseline_ || baseline_->after == 0 || baseline_->compute.empty()) return {};
  const auto mean = observe::mean_times(history, baseline_->after, ~0ull);
  if (!mean || mean->supersteps < (ending ? 2 : kCompared)) return {};
  const auto wave = stored_wave(status);
  if (!wave || !*wave || (*wave)->number != baseline_->wave) return baseline_.reset(), std::vector<RealisedGain>{};
  const double pause = (*wave)->pause.total_ms * 1e-3;
  const auto alpha = static_cast<double>(std::max<std::uint64_t>(1, baseline_->alpha));
  realised_ += (baseline_->seconds - mean->seconds) * alpha - pause;
  any_ = true;
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

void Gains::store(crds::BspJobStatus& status) const {
  if (predicted_ != 0) status.predicted_gain_seconds = significant(predicted_, 6);
  if (any_) status.realised_gain_seconds = significant(realised_, 6);
}

}  // namespace bsp::reconcile
