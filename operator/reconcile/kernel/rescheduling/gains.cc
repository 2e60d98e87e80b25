#include "operator/reconcile/kernel/rescheduling/gains.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/core/significant.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

bool was_decided(const migrate::Wave& wave) {
  return std::ranges::any_of(wave.moves, [](const migrate::Move& m) { return m.predicted_gain_seconds != 0; });
}

namespace {

// Nodes that ranks leave or come to.
std::set<std::string> touched_by(const migrate::Wave& wave) {
  std::set<std::string> nodes;
  for (const migrate::Move& move : wave.moves) nodes.insert({move.source_node, move.target_node});
  return nodes;
}

}  // namespace

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
                  std::uint64_t alpha, bool counted) {
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
  for (const migrate::Move& move : wave.moves)
    if (move.rank < mean->compute_seconds.size()) baseline_->compute[move.rank] = mean->compute_seconds[move.rank];
  const std::set<std::string> touched = touched_by(wave);
  std::vector<std::uint32_t> stays;
  for (const crds::RankPlace& place : status.ranks) {
    const std::uint32_t rank = place.rank.value;
    if (rank >= mean->compute_seconds.size()) continue;
    const double seconds = mean->compute_seconds[rank];
    baseline_->longest = std::max(baseline_->longest, seconds);
    if (baseline_->compute.contains(rank)) continue;
    if (touched.contains(place.node))
      baseline_->beside = std::max(baseline_->beside, seconds);
    else
      stays.push_back(rank);
  }
  const std::size_t each = stays.size() / kStayed + 1;
  for (std::size_t n = 0; n < stays.size(); n += each) baseline_->stayed[stays[n]] = mean->compute_seconds[stays[n]];
  if (!counted) return;
  for (const auto* ranks : {&baseline_->compute, &baseline_->stayed})
    for (const auto& [rank, seconds] : *ranks)
      if (rank < mean->instructions.size()) baseline_->work[rank] = mean->instructions[rank];
}

double Gains::with_work_of(const observe::MeanTimes& mean, std::uint32_t rank, double seconds) const {
  const auto before = baseline_->work.find(rank);
  if (before == baseline_->work.end() || rank >= mean.instructions.size()) return seconds;
  return before->second > 0 && mean.instructions[rank] > 0 ? seconds * mean.instructions[rank] / before->second
                                                           : seconds;
}

observe::JobTimes Gains::times_of_job(const crds::BspJobStatus& status, const migrate::Wave& wave,
                                      const observe::MeanTimes& mean) const {
  const Baseline& before = *baseline_;
  observe::JobTimes job{.before = before.seconds,
                        .before_error = before.error,
                        .longest = before.longest,
                        .others = before.beside,
                        .stayed = 0,
                        .after = mean.seconds,
                        .after_error = mean.error};
  for (const auto& [rank, seconds] : before.compute)
    job.others = std::max(job.others, with_work_of(mean, rank, seconds));
  if (!(before.longest > 0)) job.longest = job.others = before.seconds;  // an older operator didn't store it
  const std::set<std::string> touched = touched_by(wave);
  for (const crds::RankPlace& place : status.ranks)
    if (const std::uint32_t rank = place.rank.value;
        rank < mean.compute_seconds.size() && !before.compute.contains(rank) && !touched.contains(place.node))
      job.stayed = std::max(job.stayed, mean.compute_seconds[rank]);
  return job;
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
    if (rank < mean->compute_seconds.size())
      stayed.emplace_back(with_work_of(*mean, rank, before), mean->compute_seconds[rank]);
  const double of_before = baseline_->seconds > 0 ? baseline_->error / baseline_->seconds : 0,
               of_after = mean->seconds > 0 ? mean->error / mean->seconds : 0;
  const observe::Control control = observe::control_of(stayed, std::hypot(of_before, of_after));
  const observe::Gain of_job = observe::gain_of(times_of_job(status, **wave, *mean), control);
  // A rank that has to leave its node, or that a person moves, doesn't go for a gain.
  if (was_decided(**wave)) {
    const bool noise = of_job.is_noise();
    realised_ += (noise ? 0 : of_job.seconds * alpha) - pause;
    error_ = std::hypot(error_, (of_job.error + (noise ? std::abs(of_job.seconds) : 0)) * alpha);
    any_ = true;
  }
  std::vector<RealisedGain> out;
  for (const migrate::Move& move : (*wave)->moves)
    if (const auto before = baseline_->compute.find(move.rank);
        before != baseline_->compute.end() && move.rank < mean->compute_seconds.size()) {
      const double after = mean->compute_seconds[move.rank], was = with_work_of(*mean, move.rank, before->second);
      const observe::Gain gain = observe::gain_of(was, was * of_before, after, after * of_after, control);
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
