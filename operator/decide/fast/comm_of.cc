#include "operator/decide/fast/comm_of.h"

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

}  // namespace bsp::decide
