// Worlds of closed_loop.h whose slots have prices, 3 and 1 an hour.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/closed_loop.h"

namespace bsp::decide {

// Each Set once more at a third of the price, as spot pools are, with slots for all.
inline LoopJob with_spot_pools(std::mt19937_64& random, const LoopShape& shape) {
  LoopJob job = random_loop_job(random, shape);
  Platform& platform = job.start.platform;
  const std::size_t sets = platform.sets.size(), processors = platform.processors.size();
  Grid<double> T(2 * sets, 2 * sets), Mig(1, 2 * sets);
  for (std::size_t a = 0; a < 2 * sets; ++a) {
    Mig[0, a] = platform.Mig[0, a % sets];
    for (std::size_t b = 0; b < 2 * sets; ++b) T[a, b] = platform.T[a % sets, b % sets];
  }
  platform.T = std::move(T), platform.Mig = std::move(Mig);
  platform.T_origin = Grid<Origin>(2 * sets, 2 * sets, Origin::kMeasured);
  for (std::size_t j = 0; j < sets; ++j) platform.sets.push_back({.name = "spot-" + std::to_string(j)});
  for (std::size_t p = 0; p < processors; ++p) {
    Processor spot = platform.processors[p];
    platform.processors[p].price = 3;
    spot.name = "node-" + std::to_string(1000 + p);
    spot.set.value += static_cast<std::uint32_t>(sets);
    spot.price = 1;
    platform.processors.push_back(std::move(spot));
  }
  return job;
}

// By Set; at least one Set has each price. `by_speed`: those of more than the mean speed are the dear ones.
inline LoopJob with_priced_sets(std::mt19937_64& random, const LoopShape& shape, bool by_speed) {
  LoopJob job = random_loop_job(random, shape);
  Platform& platform = job.start.platform;
  const std::size_t sets = platform.sets.size();
  std::vector<double> price, speed(sets);
  for (std::size_t j = 0; j < sets; ++j) price.push_back(j == 0 ? 1 : j == 1 ? 3 : random() % 2 != 0 ? 3 : 1);
  std::ranges::shuffle(price, random);
  double mean = 0;
  for (const Processor& p : platform.processors) speed[p.set.value] = p.cpu / p.slots;
  for (const double each : speed) mean += each / static_cast<double>(sets);
  for (std::size_t j = 0; by_speed && j < sets; ++j) price[j] = speed[j] > mean ? 3 : 1;
  for (Processor& p : platform.processors) p.price = price[p.set.value];
  return job;
}

}  // namespace bsp::decide
