#include "operator/decide/model/metrics.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "operator/decide/fast/lanes.h"

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

// Makes the grids also name every Set of which t has values.
void widen(Metrics& m, const MeasuredSuperstep& t) {
  const Pattern& was = m.PB.pattern();
  auto pattern = std::make_shared<Pattern>(was.rows(), was.cols());
  std::vector<Pattern::Column> some, all;
  for (std::size_t i = 0; i < was.rows(); ++i) {
    some.clear(), all.clear();
    std::ranges::set_union(was.columns(i), t.recv_bytes.pattern().columns(i), std::back_inserter(some));
    std::ranges::set_union(some, t.recv_seconds.pattern().columns(i), std::back_inserter(all));
    for (const Pattern::Column j : all) pattern->name(j);
    pattern->end_row();
  }
  pattern->shrink_to_fit();
  const std::shared_ptr<const Pattern> wider = std::move(pattern);
  for (SparseGrid* grid : {&m.PB, &m.BTP, &m.P_comm, &m.B_window, &m.last.recv_bytes}) grid->widen(wider);
}

// A row's values in the columns that are `named`, which include all of its own: in place, or gathered.
std::span<const double> of_named(const SparseGrid& grid, std::size_t i, std::span<const Pattern::Column> named,
                                 std::vector<double>& gathered) {
  const std::span<const double> row = grid.row(i);
  if (row.size() == named.size()) return row;
  const std::span<const Pattern::Column> has = grid.pattern().columns(i);
  for (std::size_t k = 0, h = 0; k < named.size(); ++k) {
    const bool is_there = h < has.size() && has[h] == named[k];
    gathered[k] = is_there ? row[h++] : 0;
  }
  return {gathered.data(), named.size()};
}

void update_communication(Metrics& m, const MeasuredSuperstep& t, bool first, double step, double beta,
                          bool call_follows) {
  const std::size_t ranks = m.PB.rows(), sets = m.PB.cols();
  std::vector<double> gathered_B(sets), gathered_BT(sets);
  const Pattern &of_bytes = t.recv_bytes.pattern(), &of_seconds = t.recv_seconds.pattern();  // mostly the same one
  const bool named = m.PB.pattern().covers(of_bytes) && (&of_seconds == &of_bytes || m.PB.pattern().covers(of_seconds));
  if (!named) widen(m, t);
  const bool makes_peaks = call_follows && m.PB.pattern().size() > ranks * Peaks::kShortRow;
  m.Comm_peaks.resize(makes_peaks ? ranks : 0);
  m.B_peaks.resize(makes_peaks ? ranks : 0);
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto columns = m.PB.pattern().columns(i);
    const auto B = of_named(t.recv_bytes, i, columns, gathered_B),
               BT = of_named(t.recv_seconds, i, columns, gathered_BT);
    const auto PB = m.PB.row(i), BTP = m.BTP.row(i), P_comm = m.P_comm.row(i), sum = m.B_window.row(i),
               last = m.last.recv_bytes.row(i);
    for_each_element(B.size(), [&](auto at) {
      const auto B_t = at.of(B);
      const auto PB_t = aged(at.of(PB), B_t, first);
      const auto BTP_t = aged(at.of(BTP), at.of(BT), first);
      const auto P_t = predictability(at.of(P_comm), B_t, PB_t, beta, step);
      at.put(PB_t, PB);
      at.put(call_follows ? P_t * BTP_t : BTP_t, BTP);
      at.put(P_t, P_comm);
      at.put(at.of(sum) + B_t, sum);
      at.put(B_t, last);
    });
    if (!makes_peaks) continue;
    m.Comm_peaks[i] = peaks_of(BTP, columns);
    m.B_peaks[i] = peaks_of(B, columns);
  }
  if (call_follows) m.Comm = std::move(m.BTP);
}

}  // namespace

Metrics open_metrics(std::vector<double> P_comp, const SparseGrid& P_comm, std::size_t ranks, std::size_t sets) {
  check(P_comm.rows() == 0 || P_comm.unnamed() == 1, "P_comm is 1 of a Set that it does not name");
  P_comp.resize(ranks, 1.0);
  auto pattern = std::make_shared<Pattern>(ranks, sets);
  std::vector<double> not_one;
  for (std::size_t i = 0; i < ranks; ++i) {
    for (std::size_t k = 0; i < P_comm.rows() && k < P_comm.row(i).size(); ++k) {
      const Pattern::Column j = P_comm.pattern().columns(i)[k];
      if (P_comm.row(i)[k] == 1 || j >= sets) continue;
      pattern->name(j);
      not_one.push_back(P_comm.row(i)[k]);
    }
    pattern->end_row();
  }
  const std::vector<double> zeros(ranks, 0.0);
  const SparseGrid zero_grid(pattern, 0);
  return {.PI = zeros,
          .CTP = zeros,
          .PB = zero_grid,
          .BTP = zero_grid,
          .P_comp = std::move(P_comp),
          .P_comm = SparseGrid(pattern, 1, std::move(not_one)),
          .I_window = zeros,
          .B_window = zero_grid,
          .last = {.instructions = zeros, .recv_bytes = zero_grid}};
}

void update(Metrics& metrics, MeasuredSuperstep t, std::uint64_t alpha, const Params& params, bool call_follows) {
  const std::size_t ranks = metrics.PI.size(), sets = metrics.PB.cols();
  const auto fits = [&](const SparseGrid& g) { return g.rows() == ranks && g.cols() == sets && g.unnamed() == 0; };
  check(
      t.instructions.size() == ranks && t.compute_seconds.size() == ranks && fits(t.recv_bytes) && fits(t.recv_seconds),
      "a measured superstep has one row per rank and one column per Set");
  check(t.superstep > metrics.last.superstep, "supersteps are added in order");
  check(metrics.Comm.rows() == 0, "a call follows the superstep before");

  const bool first = metrics.supersteps == 0;
  const double step = 1.0 / static_cast<double>(alpha);
  update_computation(metrics, t, first, step, params.delta);
  update_communication(metrics, t, first, step, params.beta, call_follows);
  metrics.last.superstep = t.superstep;
  if (ranks <= Metrics::kMostReplayed) {
    if (metrics.I_recent.size() == Metrics::kReplayed) metrics.I_recent.erase(metrics.I_recent.begin());
    metrics.I_recent.push_back(t.instructions);
  }
  metrics.last.instructions = std::move(t.instructions);
  ++metrics.supersteps;
}

void rescale(Metrics& metrics, std::span<const double> ratio) {
  check(ratio.size() == metrics.PI.size(), "a ratio for each rank");
  const auto scale = [&](std::vector<double>& instructions) {
    for (std::size_t i = 0; i < instructions.size(); ++i) instructions[i] *= ratio[i];
  };
  scale(metrics.PI), scale(metrics.I_window), scale(metrics.last.instructions);
  for (std::vector<double>& superstep : metrics.I_recent) scale(superstep);
}

}  // namespace bsp::decide
