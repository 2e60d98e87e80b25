#include "operator/decide/metrics.h"

#include <algorithm>
#include <memory>

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

// How many Sets a rank has received anything from, bytes or time.
std::size_t heard_from(std::span<const double> B, std::span<const double> BT) {
  WholeLanes minus_count = {0, 0};
  std::size_t j = 0;
  for (; j + kLanes <= B.size(); j += kLanes) minus_count += (load(&B[j]) != 0.0) | (load(&BT[j]) != 0.0);
  auto count = static_cast<std::size_t>(-(minus_count[0] + minus_count[1]));
  for (; j < B.size(); ++j) count += B[j] != 0 || BT[j] != 0 ? 1 : 0;
  return count;
}

// Makes the grids name all that t has figures of as well.
void widen(Metrics& m, const MeasuredSuperstep& t) {
  const Pattern& was = m.PB.pattern();
  auto pattern = std::make_shared<Pattern>(was.rows(), was.cols());
  for (std::size_t i = 0; i < was.rows(); ++i) {
    const auto named = was.columns(i);
    const auto B = t.recv_bytes.row(i), BT = t.recv_seconds.row(i);
    const bool from_all = heard_from(B, BT) == B.size();
    for (std::size_t j = 0, k = 0; j < B.size(); ++j) {
      const bool is_named = k < named.size() && named[k] == j;
      if (is_named) ++k;
      if (from_all || is_named || B[j] != 0 || BT[j] != 0) pattern->name(j);
    }
    pattern->end_row();
  }
  pattern->shrink_to_fit();
  const std::shared_ptr<const Pattern> wider = std::move(pattern);
  for (SparseGrid* grid : {&m.PB, &m.BTP, &m.P_comm, &m.B_window, &m.last.recv_bytes}) grid->widen(wider);
}

// Of a row, the figures of the Sets that are named: where they are, or gathered.
std::span<const double> of_named(std::span<const double> row, std::span<const Pattern::Column> named,
                                 std::vector<double>& gathered) {
  if (named.size() == row.size()) return row;
  for (std::size_t k = 0; k < named.size(); ++k) gathered[k] = row[named[k]];
  return {gathered.data(), named.size()};
}

void update_communication(Metrics& m, const MeasuredSuperstep& t, bool first, double step, double beta,
                          bool call_follows) {
  const std::size_t ranks = m.PB.rows(), sets = m.PB.cols();
  std::vector<double> gathered_B(sets), gathered_BT(sets), P_BTP(sets);
  if (first) widen(m, t);
  const bool makes_peaks = call_follows && m.PB.pattern().size() > ranks * Peaks::kShortRow;
  m.P_BTP_peaks.resize(makes_peaks ? ranks : 0);
  m.B_peaks.resize(makes_peaks ? ranks : 0);
  for (std::size_t i = 0; i < ranks; ++i) {
    auto named = m.PB.pattern().columns(i);
    auto B = of_named(t.recv_bytes.row(i), named, gathered_B), BT = of_named(t.recv_seconds.row(i), named, gathered_BT);
    if (named.size() < sets && heard_from(B, BT) < heard_from(t.recv_bytes.row(i), t.recv_seconds.row(i))) {
      widen(m, t);  // all rows at once, so at most one time
      named = m.PB.pattern().columns(i);
      B = of_named(t.recv_bytes.row(i), named, gathered_B), BT = of_named(t.recv_seconds.row(i), named, gathered_BT);
    }
    const auto PB = m.PB.row(i), BTP = m.BTP.row(i), P_comm = m.P_comm.row(i), sum = m.B_window.row(i),
               last = m.last.recv_bytes.row(i);
    std::size_t k = 0;
    for (; k + kLanes <= B.size(); k += kLanes) {
      const Lanes now = load(&B[k]), predicted = aged(load(&PB[k]), now, first),
                  BTP_k = aged(load(&BTP[k]), load(&BT[k]), first);
      const Lanes P = predictability(load(&P_comm[k]), now, predicted, beta, step);
      store(predicted, &PB[k]);
      store(BTP_k, &BTP[k]);
      store(P, &P_comm[k]);
      store(P * BTP_k, &P_BTP[k]);
      store(load(&sum[k]) + now, &sum[k]);
      store(now, &last[k]);
    }
    for (; k < B.size(); ++k) {
      PB[k] = aged(PB[k], B[k], first);
      BTP[k] = aged(BTP[k], BT[k], first);
      P_comm[k] = predictability(P_comm[k], B[k], PB[k], beta, step);
      P_BTP[k] = P_comm[k] * BTP[k];
      sum[k] += B[k];
      last[k] = B[k];
    }
    if (!makes_peaks) continue;
    m.P_BTP_peaks[i] = peaks_of({P_BTP.data(), B.size()}, named);
    m.B_peaks[i] = peaks_of(B, named);
  }
}

}  // namespace

Metrics open_metrics(std::vector<double> P_comp, const Grid<double>& P_comm, std::size_t ranks, std::size_t sets) {
  P_comp.resize(ranks, 1.0);
  auto not_one = std::make_shared<Pattern>(ranks, sets);
  for (std::size_t i = 0; i < ranks; ++i) {
    for (std::size_t j = 0; i < P_comm.rows() && j < std::min(sets, P_comm.cols()); ++j)
      if (P_comm[i, j] != 1) not_one->name(j);
    not_one->end_row();
  }
  const std::vector<double> zeros(ranks, 0.0);
  const SparseGrid zero_grid(not_one, 0);
  Metrics metrics{.PI = zeros,
                  .CTP = zeros,
                  .PB = zero_grid,
                  .BTP = zero_grid,
                  .P_comp = std::move(P_comp),
                  .P_comm = SparseGrid(not_one, 1),
                  .I_window = zeros,
                  .B_window = zero_grid,
                  .last = {.instructions = zeros, .recv_bytes = zero_grid}};
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto named = not_one->columns(i);
    for (std::size_t k = 0; k < named.size(); ++k) metrics.P_comm.row(i)[k] = P_comm[i, named[k]];
  }
  return metrics;
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
  metrics.last.superstep = t.superstep;
  metrics.last.instructions = std::move(t.instructions);
  ++metrics.supersteps;
}

}  // namespace bsp::decide
