#include "sim/exchange/workload.h"

#include <algorithm>
#include <numeric>

#include "sim/exchange/dice.h"

namespace bsp::sim::exchange {

Workload make_workload(const WorkloadParams& params) {
  Workload workload{.params = params, .queues = std::vector<std::vector<Task>>(params.processes)};
  Dice dice(params.seed);
  for (std::vector<Task>& queue : workload.queues) {
    const double factor = dice.log_normal(1, params.imbalance_sigma);
    for (std::uint32_t i = 0; i < params.tasks; ++i)
      queue.push_back({.seconds = factor * dice.log_normal(params.task_seconds, params.task_sigma)});
    for (std::uint32_t left = dice.below(params.fronts + 1); left > 0; --left) {
      const double where = params.fronts_from + params.fronts_spread * dice.uniform();
      const auto at = static_cast<std::ptrdiff_t>(std::min(where, 1.0) * static_cast<double>(queue.size()));
      queue.insert(queue.begin() + at,
                   {.seconds = dice.log_normal(params.front_seconds, params.front_sigma), .front = true});
      ++workload.decisions;
    }
  }
  return workload;
}

std::vector<Share> pour(const std::vector<double>& loads, std::uint32_t self, double seconds, std::uint32_t slaves) {
  std::vector<std::uint32_t> order(loads.size());
  std::iota(order.begin(), order.end(), 0u);
  order.erase(order.begin() + self);
  const std::size_t most = std::min<std::size_t>(slaves, order.size());
  std::ranges::partial_sort(
      order, order.begin() + static_cast<std::ptrdiff_t>(most),
      [&](std::uint32_t a, std::uint32_t b) { return loads[a] != loads[b] ? loads[a] < loads[b] : a < b; });
  // The level up to which `seconds` fills k of them, for the smallest k whose level isn't above the next one's load.
  double below = 0;
  std::vector<Share> shares;
  for (std::size_t k = 1; k <= most; ++k) {
    below += loads[order[k - 1]];
    const double level = (below + seconds) / static_cast<double>(k);
    if (k < most && loads[order[k]] < level) continue;
    for (std::size_t i = 0; i < k; ++i) shares.push_back({order[i], level - loads[order[i]]});
    break;
  }
  return shares;
}

}  // namespace bsp::sim::exchange
