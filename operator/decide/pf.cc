#include "operator/decide/pf.h"

#include <algorithm>

#include "operator/decide/fast/lanes.h"

namespace bsp::decide {

Grid<double> transposed(const Grid<double>& T) {
  Grid<double> to(T.cols(), T.rows());
  for (std::size_t a = 0; a < T.rows(); ++a)
    for (std::size_t b = 0; b < T.cols(); ++b) to[b, a] = T[a, b];
  return to;
}

double Comm(std::span<const double> Bytes, std::span<const double> T_to_j) {
  const double *B = Bytes.data(), *T = T_to_j.data();
  return largest(
      Bytes.size(), 0, [=](std::size_t k) { return load(B + k) * load(T + k); },
      [=](std::size_t k) { return B[k] * T[k]; });
}

double Comm(const SparseGrid& Bytes, RankId i, std::span<const double> T_to_j) {
  const std::span<const double> B = Bytes.row(i.value);
  if (Bytes.pattern().names_all(i.value)) return Comm(B, T_to_j);
  const std::span<const Pattern::Column> sets = Bytes.pattern().columns(i.value);
  double most = 0;
  for (std::size_t k = 0; k < B.size(); ++k) most = std::max(most, B[k] * T_to_j[sets[k]]);
  return most;
}

CommOf::CommOf(const Case& c) : metrics_(c.metrics), T_to_(transposed(c.snapshot.platform.T)) {
  for (std::size_t j = 0; j < T_to_.rows(); ++j) largest_T_to_.push_back(std::ranges::max(T_to_.row(j)));
}

double CommOf::operator()(RankId i, SetId j) const {
  const auto T_to_j = T_to_.row(j.value);
  if (metrics_.B_peaks.empty()) return Comm(metrics_.last.recv_bytes, i, T_to_j);
  const Peaks& peaks = metrics_.B_peaks[i.value];
  double most = 0;
  for (std::size_t q = 0; q < Peaks::kPeaks; ++q) most = std::max(most, peaks.value[q] * T_to_j[peaks.set[q]]);
  if (most >= peaks.rest * largest_T_to_[j.value]) return most;
  return Comm(metrics_.last.recv_bytes, i, T_to_j);
}

std::vector<double> processor_seconds(const Columns& columns, std::span<const double> Instructions,
                                      std::span<const ProcessorId> placement) {
  std::vector<double> seconds(columns.available.size(), 0.0);
  for (std::size_t i = 0; i < placement.size(); ++i) seconds[placement[i].value] += Instructions[i];
  for (std::size_t p = 0; p < seconds.size(); ++p) seconds[p] /= columns.available[p];
  return seconds;
}

std::vector<double> processor_seconds(const Snapshot& snapshot, std::span<const double> Instructions,
                                      std::span<const ProcessorId> placement) {
  Columns columns;
  for (const Processor& p : snapshot.platform.processors) columns.available.push_back(p.available());
  return processor_seconds(columns, Instructions, placement);
}

double superstep_seconds(const Snapshot& snapshot, const Metrics& metrics, std::span<const ProcessorId> placement) {
  double time = 0, comm = 0;
  for (double s : processor_seconds(snapshot, metrics.last.instructions, placement)) time = std::max(time, s);
  const Grid<double> T_to = transposed(snapshot.platform.T);
  for (std::size_t i = 0; i < placement.size(); ++i) {
    const SetId j = snapshot.platform.processor(placement[i]).set;
    comm = std::max(comm, Comm(metrics.last.recv_bytes, {static_cast<std::uint32_t>(i)}, T_to.row(j.value)));
  }
  return time + comm;
}

Forecast forecast_of(const Case& c, std::span<const Move> moves) {
  const std::vector<double>& I = c.metrics.last.instructions;
  std::vector<ProcessorId> placement = c.columns.on;
  const auto largest_time = [&] { return std::ranges::max(processor_seconds(c.columns, I, placement)); };
  if (placement.empty()) return {};
  const double time_before = largest_time();
  for (const Move& move : moves) placement[move.rank.value] = move.to;
  const double time_after = moves.empty() ? time_before : largest_time();

  const CommOf comm_of(c);
  double comm_before = 0, comm_after = 0;
  for (std::uint32_t i = 0; i < placement.size(); ++i) {
    const SetId here = c.columns.own[i], there = c.columns.set[placement[i].value];
    const double comm = comm_of({i}, here);
    comm_before = std::max(comm_before, comm);
    comm_after = std::max(comm_after, there == here ? comm : comm_of({i}, there));
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
