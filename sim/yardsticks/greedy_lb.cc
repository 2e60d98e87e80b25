// GreedyLB (Charm++): takes objects by decreasing load and places each on the processor whose time with it is the
// least.
//
//   for i by decreasing I(i):  p = argmin (S(p) + I(i)) / ((1 − load(p))·cpu(p)),   S(p) += I(i),   i goes to p
//
// Ties: the smaller rank, the smaller processor. The current placement doesn't count, so nearly every rank moves.
#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/yardsticks/yardsticks.h"

namespace bsp::sim {

std::vector<ProcessorId> greedy_lb(const decide::Snapshot& snapshot, std::span<const double> I) {
  std::vector<std::uint32_t> order(I.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::uint32_t i) { return I[i]; });

  const auto& processors = snapshot.platform.processors;
  std::vector<double> sum(processors.size(), 0);
  std::vector<std::uint32_t> ranks(processors.size(), 0);
  std::vector<ProcessorId> placed(I.size());
  for (const std::uint32_t i : order) {
    std::uint32_t best = snapshot.ranks[i].processor.value;
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t p = 0; p < processors.size(); ++p) {
      const bool full = processors[p].slots > 0 && ranks[p] + processors[p].taken >= processors[p].slots;
      const double time = (sum[p] + I[i]) / processors[p].available();
      if (!full && !processors[p].cordoned && time < least) least = time, best = p;
    }
    sum[best] += I[i];
    ++ranks[best];
    placed[i] = ProcessorId{best};
  }
  return placed;
}

}  // namespace bsp::sim
