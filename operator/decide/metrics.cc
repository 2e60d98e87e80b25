#include "operator/decide/metrics.h"

#include <algorithm>

namespace bsp::decide {
namespace {

// X'_t from X'_{t−1} and X_t.
double aged(double before, double now, bool first) { return first ? now : before / 2 + now / 2; }

// P after a superstep in which X_t was measured and X'_t predicted.
double predictability(double P, double now, double predicted, double tolerance, double step) {
  const bool as_predicted =
      (now * (1 - tolerance) <= predicted) & (predicted <= now * (1 + tolerance));
  return std::clamp(P + (as_predicted ? step : -step), 0.0, 1.0);
}

void update_computation(Metrics& m, const MeasuredSuperstep& t, bool first, double step,
                        double delta) {
  for (std::size_t i = 0; i < m.PI.size(); ++i) {
    m.PI[i] = aged(m.PI[i], t.instructions[i], first);
    m.CTP[i] = aged(m.CTP[i], t.compute_seconds[i], first);
    m.P_comp[i] = predictability(m.P_comp[i], t.instructions[i], m.PI[i], delta, step);
    m.I_window[i] += t.instructions[i];
  }
}

void update_communication(Metrics& m, const MeasuredSuperstep& t, bool first, double step,
                          double beta) {
  for (std::size_t i = 0; i < m.PB.rows(); ++i) {
    const auto B = t.recv_bytes.row(i);
    const auto BT = t.recv_seconds.row(i);
    const auto PB = m.PB.row(i), BTP = m.BTP.row(i), P_comm = m.P_comm.row(i), P_BTP = m.P_BTP.row(i),
               sum = m.B_window.row(i);
    for (std::size_t j = 0; j < B.size(); ++j) {
      PB[j] = aged(PB[j], B[j], first);
      BTP[j] = aged(BTP[j], BT[j], first);
      P_comm[j] = predictability(P_comm[j], B[j], PB[j], beta, step);
      P_BTP[j] = P_comm[j] * BTP[j];
      sum[j] += B[j];
    }
  }
}

}  // namespace

Metrics open_metrics(std::vector<double> P_comp, Grid<double> P_comm, std::size_t ranks,
                     std::size_t sets) {
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
          .P_BTP = zero_grid,
          .I_window = zeros,
          .B_window = zero_grid,
          .last = {.superstep = Superstep{0},
                   .instructions = zeros,
                   .compute_seconds = zeros,
                   .recv_bytes = zero_grid,
                   .recv_seconds = zero_grid}};
}

void update(Metrics& metrics, MeasuredSuperstep t, std::uint64_t alpha, const Params& params) {
  const std::size_t ranks = metrics.PI.size(), sets = metrics.PB.cols();
  const auto fits = [&](const Grid<double>& g) { return g.rows() == ranks && g.cols() == sets; };
  check(t.instructions.size() == ranks && t.compute_seconds.size() == ranks && fits(t.recv_bytes) &&
            fits(t.recv_seconds),
        "a measured superstep has one row per rank and one column per Set");
  check(t.superstep > metrics.last.superstep, "supersteps are added in order");

  const bool first = metrics.supersteps == 0;
  const double step = 1.0 / static_cast<double>(alpha);
  update_computation(metrics, t, first, step, params.delta);
  update_communication(metrics, t, first, step, params.beta);
  metrics.last = std::move(t);
  ++metrics.supersteps;
}

}  // namespace bsp::decide
