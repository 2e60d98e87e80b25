#include "operator/reconcile/kernel/rescheduling/gains.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/core/significant.h"
#include "operator/observe/control.h"
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
      error_(status.realised_gain_error_seconds.value_or(0)),
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
  baseline_->error = mean->error;
  std::set<std::string> touched;  // nodes
  for (const migrate::Move& move : wave.moves) {
    if (move.rank < mean->compute_seconds.size()) baseline_->compute[move.rank] = mean->compute_seconds[move.rank];
    touched.insert({move.source_node, move.target_node});
  }
  std::vector<std::uint32_t> stays;
  for (const crds::RankPlace& place : status.ranks)
    if (place.rank.value < mean->compute_seconds.size() && !baseline_->compute.contains(place.rank.value) &&
        !touched.contains(place.node))
      stays.push_back(place.rank.value);
  const std::size_t each = stays.size() / kStayed + 1;
  for (std::size_t n = 0; n < stays.size(); n += each) baseline_->stayed[stays[n]] = mean->compute_seconds[stays[n]];
}

std::vector<RealisedGain> Gains::realised(const crds::BspJobStatus& status, const History& history, bool ending) {
  if (!baseline_ || baseline_->after == 0 || baseline_->compute.empty()) return {};
  const auto mean = observe::mean_times(history, baseline_->after, ~0ull);
  if (!mean || mean->supersteps < (ending ? 2 : kCompared)) return {};
  const auto wave = stored_wave(status);
  if (!wave || !*wave || (*wave)->number != baseline_->wave) return baseline_.reset(), std::vector<RealisedGain>{};
  const double pause = (*wave)->pause.total_ms * 1e-3;
  const auto alpha = static_cast<double>(std::max<std::uint64_t>(1, baseline_->alpha));
  std::vector<std::pair<double, double>> stayed;
  for (const auto& [rank, before] : baseline_->stayed)
    if (rank < mean->compute_seconds.size()) stayed.emplace_back(before, mean->compute_seconds[rank]);
  const double of_before = baseline_->seconds > 0 ? baseline_->error / baseline_->seconds : 0,
               of_after = mean->seconds > 0 ? mean->error / mean->seconds : 0;
  const observe::Control control = observe::control_of(stayed, std::hypot(of_before, of_after));
  const observe::Gain of_job =
      observe::gain_of(baseline_->seconds, baseline_->error, mean->seconds, mean->error, control);
  // A rank that has to leave its node, or that a person moves, doesn't go for a gain.
  if (was_decided(**wave)) {
    realised_ += (of_job.is_noise() ? 0 : of_job.seconds * alpha) - pause;
    error_ = std::hypot(error_, of_job.error * alpha);
    any_ = true;
  }
  std::vector<RealisedGain> out;
  for (const migrate::Move& move : (*wave)->moves)
    if (const auto before = baseline_->compute.find(move.rank);
        before != baseline_->compute.end() && move.rank < mean->compute_seconds.size()) {
      const double after = mean->compute_seconds[move.rank];
      const observe::Gain gain =
          observe::gain_of(before->second, before->second * of_before, after, after * of_after, control);
      out.push_back({.migration = move.migration,
                     .seconds = significant(gain.seconds * alpha - pause, 6),
                     .error = significant(gain.error * alpha, 2),
                     .is_noise = gain.is_noise(),
                     .superstep_before = baseline_->seconds,
                     .superstep_after = mean->seconds,
                     .superstep_is_noise = of_job.is_noise(),
                     .control = control.ranks > 0 ? std::optional(control.ratio) : std::nullopt});
    }
  baseline_.reset();
  return out;
}

void Gains::store(crds::BspJobStatus& status) const {
  if (predicted_ != 0) status.predicted_gain_seconds = significant(predicted_, 6);
  if (!any_) return;
  status.realised_gain_seconds = significant(realised_, 6);
  if (error_ > 0) status.realised_gain_error_seconds = significant(error_, 2);
}

}  // namespace bsp::reconcile
