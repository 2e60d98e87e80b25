// What Auto's objectives cost and how long they take, beside Auto by time, over complete runs on worlds with prices of 3 and 1:
//
//   spot    each Set once more at a third of the price, with slots for all
//   sets    each Set has one of the prices
//   speed   the faster Sets are the dear ones
//
//   bench_prices [--platforms 100] [--seed 1] [--worlds]
//
// The deadline is 1.1 times what the run by time takes. Noise of 2 %.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <string>

#include "operator/decide/auto/auto.h"
#include "tests/bench/priced_worlds.h"

namespace bsp::decide {
namespace {

struct Options {
  int platforms = 100;
  std::uint64_t seed = 1;
  bool worlds = false;
};

Params params_of(ObjectiveType objective, std::uint64_t length) {
  Params params;
  take_heuristic(params, Heuristic::kAuto);
  params.objective = objective;
  params.expected_supersteps = length;
  return params;
}

// Geometric mean and its standard error, of ratios.
struct Ratios {
  double sum = 0, squares = 0, worst = 0;
  int n = 0;
  void add(double ratio) {
    const double l = std::log(ratio);
    sum += l, squares += l * l, worst = std::max(worst, ratio), ++n;
  }
  [[nodiscard]] double mean() const { return std::exp(sum / n); }
  [[nodiscard]] double error() const {
    return mean() * std::sqrt(std::max(0.0, squares / n - sum * sum / n / n) / std::max(1, n - 1));
  }
};

void print(const char* name, const Ratios& cost, const Ratios& time, const char* more) {
  std::printf("  %-22s cost %.3f ± %.3f (worst %.3f)  time %.3f ± %.3f (worst %.3f)%s\n", name, cost.mean(),
              2 * cost.error(), cost.worst, time.mean(), 2 * time.error(), time.worst, more);
}

void run(const char* name, const Options& o, auto&& world) {
  Ratios cost, time, cost_given, time_given, cost_by, time_by;
  int met = 0, longer = 0;
  double slowest = 0;
  std::mt19937_64 random(o.seed);
  for (int n = 0; n < o.platforms; ++n) {
    LoopJob job = world(random);
    const auto noise = static_cast<std::uint64_t>(n) + 1;
    const auto ran = [&](ObjectiveType objective, std::uint64_t length) {
      return run_loop(job, params_of(objective, length), 0.02, noise);
    };
    const LoopRun quick = ran(ObjectiveType::kTime, 0), cheap = ran(ObjectiveType::kPrice, 0);
    const LoopRun quick_given = ran(ObjectiveType::kTime, job.supersteps),
                  cheap_given = ran(ObjectiveType::kPrice, job.supersteps);
    job.deadline = 1.1 * quick_given.makespan;
    const LoopRun by = ran(ObjectiveType::kDeadline, job.supersteps);
    cost.add(cheap.cost / quick.cost), time.add(cheap.makespan / quick.makespan);
    cost_given.add(cheap_given.cost / quick_given.cost), time_given.add(cheap_given.makespan / quick_given.makespan);
    cost_by.add(by.cost / quick_given.cost), time_by.add(by.makespan / quick_given.makespan);
    met += by.makespan <= job.deadline, longer += cheap.makespan > 1.1 * quick.makespan;
    slowest = std::max(slowest, cheap.slowest_decision);
    if (o.worlds)
      std::printf(
          "    %3d  %2zu ranks  cost %.3f  time %.3f  given %.3f %.3f  deadline %.3f %.3f  moves %lu returns %lu\n", n,
          job.work.size(), cheap.cost / quick.cost, cheap.makespan / quick.makespan,
          cheap_given.cost / quick_given.cost, cheap_given.makespan / quick_given.makespan, by.cost / quick_given.cost,
          by.makespan / job.deadline, cheap.moves, cheap.returns);
  }
  std::printf("%s: %d worlds, seed %lu; ÷ Auto by time\n", name, o.platforms, o.seed);
  print("Price", cost, time,
        std::format("  > 10 % longer: {}; slowest decision {:.0f} ms", longer, slowest * 1e3).c_str());
  print("Price, length given", cost_given, time_given, "");
  print("Deadline", cost_by, time_by, std::format("  met: {} of {}", met, o.platforms).c_str());
  std::fflush(stdout);
}

}  // namespace
}  // namespace bsp::decide

int main(int argc, char** argv) {
  using namespace bsp::decide;
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--worlds") o.worlds = true;
    if (word == "--platforms" && i + 1 < argc) o.platforms = std::atoi(argv[++i]);
    if (word == "--seed" && i + 1 < argc) o.seed = std::strtoull(argv[++i], nullptr, 10);
  }
  run("spot", o, [](auto& random) { return with_spot_pools(random, {}); });
  run("sets", o, [](auto& random) { return with_priced_sets(random, {}, false); });
  run("speed", o, [](auto& random) { return with_priced_sets(random, {}, true); });
  return 0;
}
