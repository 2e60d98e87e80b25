#include "operator/decide/pf.h"

#include <algorithm>

#include "operator/decide/lanes.h"

namespace bsp::decide {

Grid<double> transposed(const Grid<double>& T) {
  Grid<double> to(T.cols(), T.rows());
  for (std::size_t a = 0; a < T.rows(); ++a)
    for (std::size_t b = 0; b < T.cols(); ++b) to[b, a] = T[a, b];
  return to;
}

double Comm(std::span<const double> Bytes, std::span<const double> T_to_j) {
  const double *B = Bytes.data(), *T = T_to_j.data();
  return largest(Bytes.size(), 0, [=](std::size_t k) { return load(B + k) * load(T + k); },
                 [=](std::size_t k) { return B[k] * T[k]; });
}

std::vector<double> processor_seconds(const Snapshot& snapshot,
                                      std::span<const double> Instructions,
                                      std::span<const ProcessorId> placement) {
  const std::vector<Processor>& processors = snapshot.platform.processors;
  std::vector<double> seconds(processors.size(), 0.0);
  for (std::size_t i = 0; i < placement.size(); ++i) seconds[placement[i].value] += Instructions[i];
  for (std::size_t p = 0; p < seconds.size(); ++p) seconds[p] /= processors[p].available();
  return seconds;
}

double superstep_seconds(const Snapshot& snapshot, const Metrics& metrics,
                         std::span<const ProcessorId> placement) {
  double time = 0, comm = 0;
  for (double s : processor_seconds(snapshot, metrics.last.instructions, placement))
    time = std::max(time, s);
  const Grid<double> T_to = transposed(snapshot.platform.T);
  for (std::size_t i = 0; i < placement.size(); ++i) {
    const SetId j = snapshot.platform.processor(placement[i]).set;
    comm = std::max(comm, Comm(metrics.last.recv_bytes.row(i), T_to.row(j.value)));
  }
  return time + comm;
}

Forecast forecast_of(const Snapshot& snapshot, const Metrics& metrics, std::span<const Move> moves) {
  const std::vector<double>& I = metrics.last.instructions;
  std::vector<ProcessorId> placement = current_placement(snapshot);
  const auto largest_time = [&] {
    double time = 0;
    for (double s : processor_seconds(snapshot, I, placement)) time = std::max(time, s);
    return time;
  };
  const double time_before = largest_time();
  for (const Move& move : moves) placement[move.rank.value] = move.to;
  const double time_after = moves.empty() ? time_before : largest_time();

  const Grid<double> T_to = transposed(snapshot.platform.T);
  double comm_before = 0, comm_after = 0;
  for (std::uint32_t i = 0; i < placement.size(); ++i) {
    const auto Bytes = metrics.last.recv_bytes.row(i);
    const SetId here = snapshot.set({i}), there = snapshot.platform.processor(placement[i]).set;
    const double comm = Comm(Bytes, T_to.row(here.value));
    comm_before = std::max(comm_before, comm);
    comm_after = std::max(comm_after, there == here ? comm : Comm(Bytes, T_to.row(there.value)));
  }
  return {.before = time_before + comm_before, .after = time_after + comm_after};
}

std::vector<ProcessorId> current_placement(const Snapshot& snapshot) {
  std::vector<ProcessorId> placement;
  placement.reserve(snapshot.ranks.size());
  for (const Rank& rank : snapshot.ranks) placement.push_back(rank.processor);
  return placement;
}

}  // namespace bsp::decide
