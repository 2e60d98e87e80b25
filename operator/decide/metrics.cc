#include "operator/decide/metrics.h"

#include <algorithm>

#include "operator/decide/lanes.h"

namespace bsp::decide {
namespace {

// Of doubles, or of two at a time (Lanes).

// X'_t from X'_{t−1} and X_t.
template <class V>
V aged(V before, V now, bool first) {
  return first ? now : before / 2.0 + now / 2.0;
}

// P after a superstep in which X_t was measured and X'_t predicted.
template <class V>
V predictability(V P, V now, V predicted, double tolerance, double step) {
  const auto as_predicted = (now * (1 - tolerance) <= predicted) & (predicted <= now * (1 + tolerance));
  const V stepped = P + (as_predicted ? V{} + step : V{} - step);
  const V not_below = stepped < 0.0 ? V{} : stepped;
  return not_below > 1.0 ? V{} + 1.0 : not_below;
}

void update_computation(Metrics& m, const MeasuredSuperstep& t, bool first, double step, double delta) {
  for (std::size_t i = 0; i < m.PI.size(); ++i) {
    m.PI[i] = aged(m.PI[i], t.instructions[i], first);
    m.CTP[i] = aged(m.CTP[i], t.compute_seconds[i], first);
    m.P_comp[i] = predictability(m.P_comp[i], t.instructions[i], m.PI[i], delta, step);
    m.I_window[i] += t.instructions[i];
  }
}

void update_communication(Metrics& m, const MeasuredSuperstep& t, bool first, double step, double beta,
                          bool call_follows) {
  m.P_BTP_peaks.resize(call_follows ? m.PB.rows() : 0);
  m.B_peaks.resize(m.P_BTP_peaks.size());
  std::vector<double> P_BTP(m.PB.cols());
  for (std::size_t i = 0; i < m.PB.rows(); ++i) {
    const auto B = t.recv_bytes.row(i);
    const auto BT = t.recv_seconds.row(i);
    const auto PB = m.PB.row(i), BTP = m.BTP.row(i), P_comm = m.P_comm.row(i), sum = m.B_window.row(i);
    std::size_t j = 0;
    for (; j + kLanes <= B.size(); j += kLanes) {
      const Lanes now = load(&B[j]), predicted = aged(load(&PB[j]), now, first),
                  BTP_j = aged(load(&BTP[j]), load(&BT[j]), first);
      const Lanes P = predictability(load(&P_comm[j]), now, predicted, beta, step);
      store(predicted, &PB[j]);
      store(BTP_j, &BTP[j]);
      store(P, &P_comm[j]);
      store(P * BTP_j, &P_BTP[j]);
      store(load(&sum[j]) + now, &sum[j]);
    }
    for (; j < B.size(); ++j) {
      PB[j] = aged(PB[j], B[j], first);
      BTP[j] = aged(BTP[j], BT[j], first);
      P_comm[j] = predictability(P_comm[j], B[j], PB[j], beta, step);
      P_BTP[j] = P_comm[j] * BTP[j];
      sum[j] += B[j];
    }
    if (!call_follows) continue;
    m.P_BTP_peaks[i] = peaks_of(P_BTP);
    m.B_peaks[i] = peaks_of(B);
  }
}

}  // namespace

Metrics open_metrics(std::vector<double> P_comp, Grid<double> P_comm, std::size_t ranks, std::size_t sets) {
  P_comp.resize(ranks, 1.0);
  if (P_comm.rows() != ranks || P_comm.cols() != sets) {
    Grid<double> grown(ranks, sets, 1.0);
    for (std::size_t i = 0; i < std::min(ranks, P_comm.rows()); ++i)
      for (std::size_t j = 0; j < std::min(sets, P_comm.cols()); ++j) grown[i, j] = P_comm[i, j];
    P_comm = std::move(grown);
  }
  const std::vector<double> zeros(ranks, 0.0);
  const Grid<double> zero_grid(ranks, sets, 0.0);
  return {.PI = zeros,
          .CTP = zeros,
          .PB = zero_grid,
          .BTP = zero_grid,
          .P_comp = std::move(P_comp),
          .P_comm = std::move(P_comm),
          .I_window = zeros,
          .B_window = zero_grid,
          .last = {.superstep = Superstep{0},
                   .instructions = zeros,
                   .compute_seconds = zeros,
                   .recv_bytes = zero_grid,
                   .recv_seconds = zero_grid}};
}

void update(Metrics& metrics, MeasuredSuperstep t, std::uint64_t alpha, const Params& params, bool call_follows) {
  const std::size_t ranks = metrics.PI.size(), sets = metrics.PB.cols();
  const auto fits = [&](const Grid<double>& g) { return g.rows() == ranks && g.cols() == sets; };
  check(
      t.instructions.size() == ranks && t.compute_seconds.size() == ranks && fits(t.recv_bytes) && fits(t.recv_seconds),
      "a measured superstep has one row per rank and one column per Set");
  check(t.superstep > metrics.last.superstep, "supersteps are added in order");

  const bool first = metrics.supersteps == 0;
  const double step = 1.0 / static_cast<double>(alpha);
  update_computation(metrics, t, first, step, params.delta);
  update_communication(metrics, t, first, step, params.beta, call_follows);
  metrics.last = std::move(t);
  ++metrics.supersteps;
}

}  // namespace bsp::decide
