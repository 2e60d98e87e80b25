#include "operator/reconcile/kernel/start/start_platform.h"

#include <algorithm>
#include <functional>
#include <ranges>

#include "operator/observe/benchmarks.h"

namespace bsp::reconcile {

decide::Platform platform_at_start(const Observed& o, const std::vector<observe::NodeFacts>& nodes) {
  std::vector<std::string> sets = observe::set_names(o.job.spec.sets, nodes);
  const auto calibration = observe::Calibration::from_status(o.job.status.calibration);
  auto benchmarks = observe::Benchmarks::from_status(o.job.status.calibration);
  if (!o.queued) benchmarks.update({}, nodes);
  std::map<std::string, double> of_core;
  for (const std::string& set : sets)
    if (of_core.empty()) of_core = benchmarks.relative_to(set);
  if (is_ordered_by_speed(o.job.spec) && sets.size() > 1) {
    const auto nominal = observe::nominal_speeds(nodes, of_core);
    std::map<std::string, double> speed;
    for (const std::string& set : sets) speed[set] = calibration.cpu(set, nominal).value;
    const auto [least, most] = std::ranges::minmax(speed | std::views::values);
    if (most > least * (1 + observe::Calibration::kApart))
      std::ranges::stable_sort(sets, std::greater{}, [&](const std::string& set) { return speed.at(set); });
  }
  return observe::make_platform(sets, nodes, calibration, of_core);
}

bool is_ordered_by_speed(const crds::BspJobSpec& spec) {
  return spec.sets.names.empty() && spec.initial_mapping == crds::InitialMapping::kContiguous;
}

std::string order_by_speed(const crds::BspJobSpec& spec, const crds::RankPlaces& ranks) {
  if (!is_ordered_by_speed(spec)) return "";
  std::vector<std::string> sets;
  for (const crds::RankPlace& place : ranks)
    if (!std::ranges::contains(sets, place.set)) sets.push_back(place.set);
  if (std::ranges::is_sorted(sets)) return "";
  std::string names;
  for (const std::string& set : sets) names += (names.empty() ? "" : ", ") + set;
  return names;
}

}  // namespace bsp::reconcile
