// Auto where work is irregular: it grows, alternates or wanders from rank to rank, as in the applications of examples/. That is
// structure and no noise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "operator/decide/auto/auto.h"
#include "operator/decide/auto/replay.h"
#include "tests/bench/closed_loop.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

using Drift = std::function<double(std::uint64_t t, std::uint32_t i)>;

// A wavefront, like Smith-Waterman: rank i begins in superstep i, and work grows fourfold.
Drift wavefront(std::uint64_t supersteps, std::uint32_t ranks) {
  return [=](std::uint64_t t, std::uint32_t i) {
    const double length = static_cast<double>(supersteps - ranks);
    const double done = (static_cast<double>(t) - i) / length;
    return done < 0 || done > 1 ? 1e-3 : 0.4 + 1.2 * done;
  };
}

// Panels and updates of a matrix that shrinks, like LU: in every other superstep a half of the ranks works, in turn.
Drift shrinking(std::uint64_t supersteps) {
  return [=](std::uint64_t t, std::uint32_t i) {
    const double left = 1 - static_cast<double>(t) / static_cast<double>(supersteps + 1);
    if (t % 2 == 1) return left * left;
    return (t / 2 + i) % 2 == 0 ? 0.4 * left : 0.02 * left;
  };
}

// Uneven ranges, like the fractal compression: a rank's part of the picture is sky, slope or mountain, and each begins elsewhere.
Drift uneven(std::uint64_t supersteps, std::uint32_t ranks) {
  return [=](std::uint64_t t, std::uint32_t i) {
    const double at = static_cast<double>(t) / static_cast<double>(supersteps) + static_cast<double>(i) / ranks;
    const double height = at - std::floor(at);
    return height < 0.25 ? 0.005 : std::min(1.0, (height - 0.25) * 4);
  };
}

struct IrregularWorld {
  std::string kind;
  LoopJob job;
};

// Half of the slots are free: as many fast ones as there are ranks.
std::vector<IrregularWorld> irregular_worlds(std::mt19937_64& random) {
  std::vector<IrregularWorld> worlds;
  for (const std::uint32_t ranks : {4u, 12u})
    for (const std::uint64_t steps : {43u, 64u, 300u})
      for (const char* kind : {"wavefront", "shrinking", "uneven"}) {
        LoopJob job = random_loop_job(random, {.least_ranks = ranks,
                                               .most_ranks = ranks,
                                               .spare = 0.5,
                                               .least_seconds = 1,
                                               .most_seconds = 2,
                                               .least_steps = steps,
                                               .most_steps = steps});
        // A half of the nodes is twice as fast; ranks begin on both kinds.
        job.start.platform = platform_of({{.name = "slow", .processors = ranks, .cpu = 0.5e9, .slots = 1},
                                          {.name = "fast", .processors = ranks, .cpu = 1e9, .slots = 1}});
        job.start.platform.Mig = Grid<double>(1, 2, 0.4);
        job.start.platform.T_origin = Grid<Origin>(2, 2, Origin::kMeasured);
        for (std::uint32_t i = 0; i < ranks; ++i)
          job.start.ranks[i] = {.processor = {i < ranks / 2 ? i : ranks + i}, .memory_bytes = 40e6}, job.work[i] = 1e9;
        const std::string name = kind;
        job.drift = name == "wavefront"   ? wavefront(steps, ranks)
                    : name == "shrinking" ? shrinking(steps)
                                          : uneven(steps, ranks);
        worlds.push_back(
            {name + " of " + std::to_string(steps) + ", " + std::to_string(ranks) + " ranks", std::move(job)});
      }
  return worlds;
}

TEST(IrregularWork, IsNoNoise) {
  std::mt19937_64 random(20261125);
  for (const IrregularWorld& world : irregular_worlds(random)) {
    const LoopJob& job = world.job;
    const auto ranks = static_cast<std::uint32_t>(job.work.size());
    std::vector<ProcessorId> best;
    for (std::uint32_t i = 0; i < ranks; ++i) best.push_back({ranks + i});
    const double still = job.seconds_without_moves(), least = job.seconds_on(best);
    Params params;
    take_heuristic(params, Heuristic::kAuto);
    params.alpha0 = 5;
    const LoopRun run = run_loop(job, params, 0.02, 1);
    const double part = (still - run.makespan) / (still - least);
    std::printf("%-32s gain %5.1f %% of %5.1f: %5.1f %%, %llu moves, %llu returns, first at %llu\n", world.kind.c_str(),
                100 * (1 - run.makespan / still), 100 * (1 - least / still), 100 * part,
                static_cast<unsigned long long>(run.moves), static_cast<unsigned long long>(run.returns),
                static_cast<unsigned long long>(run.moved_at.empty() ? 0 : run.moved_at[0]));
    EXPECT_GE(part, 0.5) << world.kind;
    EXPECT_EQ(run.returns, 0u) << world.kind;
  }
}

// Sets of any speed, with few free slots, noise of ±10 % and checkpoints of up to 800 MB: by far not all of it is worth a move.
TEST(IrregularWork, CostsNoMoreThanStayingHasCost) {
  std::mt19937_64 random(20261126);
  double logs = 0, worst = 0;
  constexpr int kWorlds = 60;
  for (int w = 0; w < kWorlds; ++w) {
    LoopJob job = random_loop_job(random, {.least_ranks = 4,
                                           .most_ranks = 24,
                                           .spare = w % 2 == 0 ? 0.5 : 0.1,
                                           .least_seconds = 0.05,
                                           .most_seconds = 2,
                                           .least_steps = 40,
                                           .most_steps = 400});
    const auto ranks = static_cast<std::uint32_t>(job.work.size());
    job.drift = w % 3 == 0   ? wavefront(job.supersteps, ranks)
                : w % 3 == 1 ? shrinking(job.supersteps)
                             : uneven(job.supersteps, ranks);
    const double still = job.seconds_without_moves();
    Params params;
    take_heuristic(params, Heuristic::kAuto);
    const LoopRun run = run_loop(job, params, 0.1, 20261126 + static_cast<std::uint64_t>(w));
    EXPECT_EQ(run.returns, 0u) << w;
    double least = 0;
    for (std::uint64_t t = 1; t <= job.supersteps; ++t) {
      LoopJob of_superstep{.start = job.start, .hears = job.hears};
      for (std::uint32_t i = 0; i < ranks; ++i) of_superstep.work.push_back(job.work_of(i, t));
      least += least_superstep_seconds(of_superstep);
    }
    EXPECT_LE(run.makespan - still, std::max(AutoRule::kRisk * still, AutoRule::kShare * (still - least))) << w;
    logs += std::log(run.makespan / still);
    worst = std::max(worst, run.makespan / still);
  }
  std::printf("irregular work: gain %.1f %%, worst %+.1f %%\n", 100 * (1 - std::exp(logs / kWorlds)),
              100 * (worst - 1));
  EXPECT_GE(1 - std::exp(logs / kWorlds), 0.1);
}

// Whatever the work: no superstep of the part is longer than where all are, though the mapping may be anything.
TEST(FasterPart, MakesNoSuperstepLonger) {
  std::mt19937_64 random(20261127);
  std::uint64_t moved = 0;
  for (int w = 0; w < 300; ++w) {
    const LoopJob job = random_loop_job(random, {.least_ranks = 2, .most_ranks = 12, .spare = 0.4});
    const auto columns = columns_of(job.start);
    ASSERT_TRUE(columns.has_value());
    std::vector<ProcessorId> slots;
    for (std::uint32_t p = 0; p < columns->slots.size(); ++p)
      slots.insert(slots.end(), columns->slots[p], ProcessorId{p});
    std::ranges::shuffle(slots, random);
    const std::vector<ProcessorId> mapping(slots.begin(),
                                           slots.begin() + static_cast<std::ptrdiff_t>(columns->on.size()));
    const std::vector<ProcessorId> part = faster_part(*columns, mapping);
    for (std::size_t i = 0; i < part.size(); ++i) {
      EXPECT_TRUE(part[i] == mapping[i] || part[i] == columns->on[i]);
      moved += part[i] != columns->on[i];
    }
    for (std::uint32_t p = 0; p < columns->slots.size(); ++p)
      EXPECT_LE(std::ranges::count(part, ProcessorId{p}), std::max(columns->slots[p], columns->held[p]));
    for (int k = 0; k < 20; ++k) {
      std::vector<double> work;
      for (std::size_t i = 0; i < part.size(); ++i) work.push_back(std::exponential_distribution(1e-9)(random));
      const std::vector<std::vector<double>> once{work};
      EXPECT_LE(replayed_seconds(*columns, once, part), replayed_seconds(*columns, once, columns->on));
    }
  }
  EXPECT_GT(moved, 300u) << "or the test says nothing";
}

}  // namespace
}  // namespace bsp::decide
