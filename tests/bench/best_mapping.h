// What a decision could reach at best that knew everything before the first superstep: who talks to whom, the exact work,
// the length. The bound of closed_loop.h is below it, since it takes no message to cross a slow link and work to be
// divisible where processors are shared; where the optimum is known (few ranks), this finds it.
//
//   J = supersteps · superstep(mapping) + the largest Mem of its moves        s, one wave before the first superstep
//
// Simulated annealing: a rank goes to a free slot or changes places with another, half of the time one of the slowest
// processor. It moves whole mappings, so a slot that is left may be taken at once. Deterministic.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/bench/closed_loop.h"

namespace bsp::decide {

inline double wave_seconds(const LoopJob& job, const std::vector<ProcessorId>& on) {
  std::vector<ProcessorId> home;
  for (const Rank& rank : job.start.ranks) home.push_back(rank.processor);
  return job.pause(home, on);
}

struct BestMapping {
  double seconds = 0;  // J
  std::vector<ProcessorId> on{};
};

class Annealing {
 public:
  Annealing(const LoopJob& job, std::uint64_t seed) : job_(job), random_(seed) {}

  BestMapping run(std::vector<ProcessorId> start, std::uint32_t steps) {
    on_ = std::move(start);
    held_.assign(job_.start.platform.processors.size(), 0);
    for (const ProcessorId p : on_) ++held_[p.value];
    double now = cost();
    BestMapping best{real_, on_};
    const double hot = now * kHot, cold = now * kCold;
    for (std::uint32_t step = 0; step < steps; ++step) {
      const double temperature = hot * std::pow(cold / hot, static_cast<double>(step) / steps);
      const std::vector<ProcessorId> before = on_;
      if (!change()) continue;
      const double next = cost();
      if (next <= now || std::uniform_real_distribution(0.0, 1.0)(random_) < std::exp((now - next) / temperature)) {
        now = next;
        std::ranges::fill(held_, 0);
        for (const ProcessorId p : on_) ++held_[p.value];
        if (real_ < best.seconds) best = {real_, on_};
      } else {
        on_ = before;
      }
    }
    return best;
  }

 private:
  static constexpr double kHot = 0.05, kCold = 1e-5, kCrowd = 0.003;

  std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }

  // J, and a little for every processor that is nearly as late as the slowest: otherwise most changes make no difference.
  double cost() {
    const std::vector<double> busy = job_.busy(on_, 1);
    const double slowest = std::ranges::max(busy), steps = static_cast<double>(job_.supersteps);
    double crowd = 0;
    for (const double seconds : busy) crowd += std::pow(seconds / slowest, 8);
    real_ = steps * (slowest + job_.communication(on_)) + wave_seconds(job_, on_);
    return real_ + steps * slowest * kCrowd * std::log(crowd);
  }
  std::uint32_t one_on(std::uint32_t p) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t i = 0; i < on_.size(); ++i)
      if (on_[i].value == p) ranks.push_back(i);
    return ranks[below(ranks.size())];
  }
  bool change() {
    std::uint32_t i = below(on_.size());
    if (below(2) == 0) {
      const std::vector<double> busy = job_.busy(on_, 1);
      i = one_on(static_cast<std::uint32_t>(std::ranges::max_element(busy) - busy.begin()));
    }
    const std::uint32_t to = below(held_.size());
    if (to == on_[i].value) return false;
    const bool full = held_[to] >= job_.start.platform.processors[to].slots;
    if (full || (held_[to] > 0 && below(4) == 0)) on_[one_on(to)] = on_[i];
    on_[i] = {to};
    return true;
  }

  const LoopJob& job_;
  std::mt19937_64 random_;
  std::vector<ProcessorId> on_;
  std::vector<std::uint32_t> held_;  // ranks by processor
  double real_ = 0;                  // J of on_
};

// The better of two searches: from where the job begins, and from where a run ended.
inline BestMapping best_mapping(const LoopJob& job, const std::vector<ProcessorId>& ended, std::uint32_t steps) {
  std::vector<ProcessorId> on;
  for (const Rank& rank : job.start.ranks) on.push_back(rank.processor);
  const BestMapping one = Annealing(job, 1).run(on, steps), other = Annealing(job, 2).run(ended, steps);
  return other.seconds < one.seconds ? other : one;
}

}  // namespace bsp::decide
