// Ranks that use more CPU than they request, so that those of a node slow each other down: the whole way from what was measured to the
// moves and what they gain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "operator/decide/auto/auto.h"
#include "tests/unit/observe/operator_loop.h"

namespace bsp::observe {
namespace {

constexpr std::uint64_t kSharedNodeSeed = 20261126;

// Two slots on each node, which has CPU for one rank.
decide::LoopJob on_shared_nodes(std::mt19937_64& random) {
  decide::LoopJob job = decide::random_loop_job(random, {.least_steps = 400, .most_steps = 1000, .crowded = false});
  std::map<SetId, std::uint32_t> slots;
  for (decide::Processor& p : job.start.platform.processors) {
    job.node.push_back(p.set.value * 1000 + slots[p.set]++ / 2);
    p.name = "node-" + std::to_string(job.node.back());
  }
  return job;
}

TEST(SharedNode, RanksThatRequestTooLittleGainAllTheSame) {
  std::mt19937_64 random(kSharedNodeSeed);
  struct Tally {  // `told`: the operator knows for how many ranks a node has CPU
    double logs = 0, worst = 0;
    std::uint64_t moves = 0;
    [[nodiscard]] double gain() const { return 1 - std::exp(logs); }
  } of_told, of_untold;
  constexpr int kWorlds = 10;
  OperatorLoop loop;
  decide::take_heuristic(loop.params, crds::Heuristic::kAuto);
  for (std::uint64_t w = 0; w < kWorlds; ++w) {
    const decide::LoopJob job = on_shared_nodes(random);
    for (const bool told : {true, false}) {
      loop.at_full_speed = told ? 1 : INFINITY;
      const decide::LoopRun run = run_as_operator(job, loop, kSharedNodeSeed + w);
      Tally& tally = told ? of_told : of_untold;
      const double ratio = run.makespan / job.seconds_without_moves();
      tally.logs += std::log(ratio) / kWorlds;
      tally.worst = std::max(tally.worst, ratio);
      tally.moves += run.moves;
    }
  }
  for (const Tally& tally : {of_told, of_untold})
    std::printf("shared nodes: gain %.1f %%, worst %+.1f %%, %llu moves\n", 100 * tally.gain(), 100 * (tally.worst - 1),
                static_cast<unsigned long long>(tally.moves));
  EXPECT_LE(of_told.worst, 1.01);
  EXPECT_LT(of_told.moves, of_untold.moves / 2) << "nobody wanders";
}

}  // namespace
}  // namespace bsp::observe
