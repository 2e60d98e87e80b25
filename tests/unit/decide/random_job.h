// Jobs of any shape for tests of what holds for all of them, from a seed that is printed.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "operator/decide/model/plan.h"

namespace bsp::decide {

struct Shape {
  std::uint32_t ranks = 8, processors = 6, sets = 3;
};

// Row i is row old_row[i] of the grid.
inline SparseGrid permuted(const SparseGrid& grid, std::span<const std::uint32_t> old_row) {
  const Grid<double> from = grid.dense();
  Grid<double> to(from.rows(), from.cols());
  for (std::size_t i = 0; i < old_row.size(); ++i) std::ranges::copy(from.row(old_row[i]), to.row(i).begin());
  return to;
}

// A snapshot and one superstep. Half of the jobs have slots; now and then something is cordoned, a rank is kept where
// it is or lacks CPU features, moves are limited, or all ranks compute the same.
struct OneSuperstep {
  Snapshot snapshot{};
  MeasuredSuperstep superstep{};
  Params params{};

  OneSuperstep(std::mt19937_64& random, const Shape& shape, Heuristic heuristic) {
    const auto between = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
    const auto below = [&](std::uint32_t n) { return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random); };
    const auto one_in = [&](std::uint32_t n) { return below(n) == 0; };
    Platform& platform = snapshot.platform;
    platform.sets.resize(shape.sets);
    platform.T = Grid<double>(shape.sets, shape.sets);
    platform.Mig = Grid<double>(1, shape.sets);
    const double price = one_in(2) ? 0.01 : 0.5;  // of a migration
    for (std::uint32_t a = 0; a < shape.sets; ++a) {
      platform.sets[a].cordoned = one_in(12);
      platform.Mig[0, a] = between(0, price);
      for (std::uint32_t b = 0; b < shape.sets; ++b) platform.T[a, b] = a == b ? 1e-9 : between(1e-8, 1e-7);
    }
    const bool slots = one_in(2);
    for (std::uint32_t p = 0; p < shape.processors; ++p)
      platform.processors.push_back({.set = SetId{below(shape.sets)},
                                     .cpu = between(5e8, 3e9),
                                     .load = one_in(3) ? between(0, 0.8) : 0,
                                     .slots = slots ? 1 + below(3) : 0,
                                     .cordoned = one_in(12)});
    const bool alike = one_in(4);
    superstep.superstep = {1};
    Grid<double> bytes(shape.ranks, shape.sets), seconds(shape.ranks, shape.sets);
    const double much = one_in(2) ? 1e7 : 1e5;  // bytes
    for (std::uint32_t i = 0; i < shape.ranks; ++i) {
      snapshot.ranks.push_back({.processor = {below(shape.processors)}, .memory_bytes = between(0, 1e7)});
      if (one_in(10)) snapshot.ranks.back().not_migratable = "an open RMA window";
      if (one_in(10)) snapshot.ranks.back().no_moves_to = {SetId{below(shape.sets)}};
      superstep.instructions.push_back(alike ? 1e9 : std::floor(between(1e8, 2e9)));
      superstep.compute_seconds.push_back(between(0.1, 2));
      for (std::uint32_t j = 0; j < shape.sets; ++j) {
        bytes[i, j] = between(0, much);
        seconds[i, j] = between(0, 0.1);
      }
    }
    superstep.recv_bytes = bytes, superstep.recv_seconds = seconds;
    params = {.heuristic = heuristic, .alpha0 = 1, .x = 0.5, .max_moves = one_in(5) ? 1 + below(shape.ranks) : 0};
  }

  // Every superstep like the one, up to a call after `alpha`.
  [[nodiscard]] Window window(std::uint64_t alpha = 1) const {
    State state{.cadence = {.alpha = alpha}};
    Window window(state, params, snapshot.ranks.size(), snapshot.platform.sets.size());
    for (std::uint64_t t = 1; !window.call_due(); ++t) {
      MeasuredSuperstep next = superstep;
      next.superstep = Superstep{t};
      window.add(next);
    }
    return window;
  }
};

}  // namespace bsp::decide
