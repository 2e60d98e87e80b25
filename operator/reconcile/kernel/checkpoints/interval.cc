#include "operator/reconcile/kernel/checkpoints/interval.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

namespace bsp::reconcile {

double mean_time_between_losses(std::uint32_t nodes, double ran, std::uint32_t losses) {
  const double prior = kNodeMtbf / std::max(1u, nodes);
  return (prior + std::max(0.0, ran)) / (1.0 + losses);
}

double auto_interval(double cost, double mtbf) {
  if (!(cost > 0)) return kFirstInterval;
  const double best = std::clamp(std::sqrt(2 * cost * std::max(0.0, mtbf)), kLeastInterval, kMostInterval);
  return std::max(best, cost / kMostOfRun);
}

Duration set_interval(const Observed& o) {
  return set_interval(o, o.job.status.checkpoint.value_or(crds::CheckpointStatus{}));
}

Duration set_interval(const Observed& o, const crds::CheckpointStatus& checkpoint) {
  const crds::CheckpointSpec& spec = o.job.spec.checkpoint;
  if (spec.interval != crds::kAutoInterval)
    return std::chrono::seconds(crds::duration_seconds(spec.interval).value_or(0));
  double waited = 0;
  std::uint32_t known = 0;
  for (const crds::StoredSet& set : checkpoint.sets) {
    if (set.pause_seconds <= 0) continue;
    waited += set.pause_seconds;
    ++known;
  }
  std::set<std::string_view> nodes;
  for (const crds::RankPlace& place : o.job.status.ranks) nodes.insert(place.node);
  const double mtbf =
      mean_time_between_losses(static_cast<std::uint32_t>(nodes.size()), to_seconds(o.started_for), checkpoint.losses);
  return from_seconds(auto_interval(known > 0 ? waited / known : 0, mtbf));
}

}  // namespace bsp::reconcile
