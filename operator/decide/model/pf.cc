#include "operator/decide/model/pf.h"

#include <algorithm>

#include "operator/decide/model/means.h"

namespace bsp::decide {

std::vector<double> processor_seconds(const Columns& columns, std::span<const double> Instructions,
                                      std::span<const ProcessorId> placement) {
  std::vector<double> seconds(columns.available.size(), 0.0);
  for (std::size_t i = 0; i < placement.size(); ++i) seconds[placement[i].value] += Instructions[i];
  for (std::size_t p = 0; p < seconds.size(); ++p) seconds[p] /= columns.available[p];
  return seconds;
}

Forecast forecast_of(const Case& c, std::span<const Move> moves) {
  const std::vector<double>& I = c.metrics.last.instructions;
  std::vector<ProcessorId> placement = c.columns.on;
  const auto largest_time = [&] { return std::ranges::max(processor_seconds(c.columns, I, placement)); };
  if (placement.empty()) return {};
  const double time_before = largest_time();
  for (const Move& move : moves) placement[move.rank.value] = move.to;
  const double time_after = moves.empty() ? time_before : largest_time();

  const std::unique_ptr<CommTimes> Comm = c.means->comm_times(c);
  double comm_before = 0, comm_after = 0;
  for (std::uint32_t i = 0; i < placement.size(); ++i) {
    const SetId here = c.columns.own[i], there = c.columns.set[placement[i].value];
    const double comm = (*Comm)({i}, here);
    comm_before = std::max(comm_before, comm);
    comm_after = std::max(comm_after, there == here ? comm : (*Comm)({i}, there));
  }
  return {.before = time_before + comm_before, .after = time_after + comm_after};
}

}  // namespace bsp::decide
