// Ranks that use more CPU than they request, so that those of a node slow each other down: the whole way from what was measured to the
// moves and what they gain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "operator/decide/auto.h"
#include "operator/observe/snapshot.h"
#include "tests/bench/closed_loop.h"

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

// As the operator decides. `told`: it knows for how many ranks a node has CPU.
decide::LoopRun run_as_operator(const decide::LoopJob& job, bool told, std::uint64_t seed) {
  const decide::Platform& truth = job.start.platform;
  std::vector<std::string> names;
  for (const decide::Set& set : truth.sets) names.push_back(set.name);
  std::vector<NodeFacts> nodes;
  for (const decide::Processor& p : truth.processors) {
    const auto seen = std::ranges::find(nodes, p.name, &NodeFacts::name);
    if (seen != nodes.end())
      ++seen->slots;
    else
      nodes.push_back({.name = p.name, .set = names[p.set.value], .at_full_speed = told ? 1 : INFINITY});
  }
  const auto places = [&](const std::vector<ProcessorId>& on) {
    std::vector<std::string> node, set;
    for (const ProcessorId p : on) node.push_back(truth.processor(p).name), set.push_back(names[job.set_of(p).value]);
    return std::pair(node, set);
  };
  Calibration calibration;
  const decide::LoopView view = [&](const decide::MeasuredSuperstep& seen, const std::vector<ProcessorId>& on,
                                    decide::Snapshot&) {
    const auto [node, set] = places(on);
    SuperstepTimes times;
    times.instructions = seen.instructions, times.compute_seconds = seen.compute_seconds;
    const std::vector<double> alone = slowed_by_each_other(node, nodes);
    for (std::size_t i = 0; i < alone.size(); ++i) times.instructions[i] *= alone[i];
    calibration.add_superstep(times, set, node);
  };
  const decide::LoopPlanner planner = [&](const decide::Snapshot& real, const decide::Window& window,
                                          const decide::Params& params) -> Result<decide::Plan> {
    decide::Platform platform = make_platform(names, nodes, calibration);
    platform.T = truth.T, platform.Mig = truth.Mig;
    std::vector<RankFacts> ranks;
    std::vector<bool> taken(truth.processors.size());
    for (const decide::Rank& rank : real.ranks) {
      taken[rank.processor.value] = true;
      ranks.push_back({.node = truth.processor(rank.processor).name,
                       .memory_bytes = rank.memory_bytes,
                       .last_move = rank.last_move.value,
                       .blocked_reason = "",
                       .partners = rank.partners});
      for (const ProcessorId p : rank.left) ranks.back().left.push_back(truth.processor(p).name);
    }
    const decide::Snapshot known = make_snapshot(platform, ranks, nodes);
    BSP_TRY(decide::Plan plan, decide::make_plan(known, window, params));
    for (decide::Move& move : plan.moves) {
      std::uint32_t p = 0;
      while (taken[p] || truth.processors[p].name != known.platform.processor(move.to).name) ++p;
      taken[p] = true;
      move.to = {p}, move.from = real.ranks[move.rank.value].processor;
    }
    return plan;
  };
  decide::Params params;
  decide::take_heuristic(params, crds::Heuristic::kAuto);
  return run_loop(job, params, 0.02, seed, planner, view);
}

TEST(SharedNode, RanksThatRequestTooLittleGainAllTheSame) {
  std::mt19937_64 random(kSharedNodeSeed);
  struct Tally {
    double logs = 0, worst = 0;
    std::uint64_t moves = 0;
    [[nodiscard]] double gain() const { return 1 - std::exp(logs); }
  } of_told, of_untold;
  constexpr int kWorlds = 10;
  for (std::uint64_t w = 0; w < kWorlds; ++w) {
    const decide::LoopJob job = on_shared_nodes(random);
    for (const bool told : {true, false}) {
      const decide::LoopRun run = run_as_operator(job, told, kSharedNodeSeed + w);
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
