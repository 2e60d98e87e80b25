#include "operator/decide/auto/replay.h"

#include <algorithm>
#include <cstdint>

#include "operator/decide/model/pf.h"

namespace bsp::decide {

double replayed_seconds(const Columns& columns, std::span<const std::vector<double>> I,
                        std::span<const ProcessorId> on) {
  double sum = 0;
  for (const std::vector<double>& of_superstep : I)
    sum += std::ranges::max(processor_seconds(columns, of_superstep, on));
  return I.empty() ? 0 : sum / static_cast<double>(I.size());
}

std::vector<ProcessorId> faster_part(const Columns& columns, std::span<const ProcessorId> mapping) {
  constexpr std::uint32_t kNobody = ~0u, kSeveral = kNobody - 1;
  std::vector<ProcessorId> part(mapping.begin(), mapping.end());
  for (bool again = true; again;) {  // who stays after all is where others may have wanted to go
    again = false;
    std::vector<std::uint32_t> from(columns.available.size(), kNobody);  // by processor, where those on it were
    for (std::size_t i = 0; i < part.size(); ++i) {
      std::uint32_t& origin = from[part[i].value];
      origin = origin == kNobody || origin == columns.on[i].value ? columns.on[i].value : kSeveral;
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      const ProcessorId home = columns.on[i], to = part[i];
      const bool faster = columns.available[to.value] >= columns.available[home.value] * (1 + Replay::kFaster);
      if (to == home || (faster && from[to.value] == home.value)) continue;
      part[i] = home;
      again = true;
    }
  }
  return part;
}

}  // namespace bsp::decide
