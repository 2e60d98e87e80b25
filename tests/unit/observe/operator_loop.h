// A closed loop (tests/bench/closed_loop.h) in which nothing but the operator's own way leads from reports to decisions: speeds that
// are learned from what ranks report, nodes and their slots.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "operator/decide/make_plan.h"
#include "operator/observe/rank_factors.h"
#include "operator/observe/slowdowns.h"
#include "operator/observe/snapshot.h"
#include "tests/bench/closed_loop.h"

namespace bsp::observe {

struct OperatorLoop {
  decide::Params params{};
  double noise = 0.02;                                             // relative
  double at_full_speed = std::numeric_limits<double>::infinity();  // NodeFacts's, of each node
  // By rank: how many times as long as others it computes for an instruction; empty: 1.
  std::vector<double> cycles{};
  bool timed = false;  // CPU time is all that is known; Sets of one speed only
  // Changes what is learned of a superstep; empty: it is what was measured.
  std::function<void(SuperstepTimes& times)> learns{};
};

// Processors of the job that have one name are slots of one node.
inline decide::LoopRun run_as_operator(const decide::LoopJob& job, const OperatorLoop& loop, std::uint64_t seed) {
  const decide::Platform& truth = job.start.platform;
  std::vector<std::string> names;
  for (const decide::Set& set : truth.sets) names.push_back(set.name);
  std::vector<NodeFacts> nodes;
  for (const decide::Processor& p : truth.processors) {
    const auto seen = std::ranges::find(nodes, p.name, &NodeFacts::name);
    if (seen != nodes.end())
      seen->slots += p.slots;
    else
      nodes.push_back(
          {.name = p.name, .set = names[p.set.value], .slots = p.slots, .at_full_speed = loop.at_full_speed});
  }
  Calibration calibration;
  RankFactors factors;
  Slowdowns slowdowns;
  const decide::LoopView view = [&](decide::MeasuredSuperstep& seen, const std::vector<ProcessorId>& on,
                                    decide::Snapshot&) {
    if (loop.timed)
      for (std::size_t i = 0; i < on.size(); ++i) seen.instructions[i] = 1e9 * seen.compute_seconds[i];
    for (std::size_t i = 0; i < loop.cycles.size(); ++i) seen.instructions[i] /= loop.cycles[i];
    std::vector<std::string> node, set;
    for (const ProcessorId p : on) node.push_back(truth.processor(p).name), set.push_back(names[job.set_of(p).value]);
    if (loop.timed) {
      slowdowns.add(seen.instructions, node, calibration);
      for (std::size_t i = 0; i < on.size(); ++i) seen.instructions[i] *= slowdowns.factor(i);
    }
    SuperstepTimes times;
    times.superstep = seen.superstep.value;
    times.instructions = seen.instructions, times.compute_seconds = seen.compute_seconds;
    const std::vector<double> alone = slowed_by_each_other(node, nodes);
    for (std::size_t i = 0; i < alone.size(); ++i) times.instructions[i] *= alone[i];
    if (loop.learns) loop.learns(times);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      times.instructions[i] *= factors.factor(i);
      seen.instructions[i] *= factors.factor(i);
    }
    calibration.add_superstep(times, set, node);
    factors.add(times, set, node, calibration);
  };
  const decide::LoopPlanner planner = [&](const decide::Snapshot& real, const decide::Window& window,
                                          const decide::Params& params) -> Result<decide::Plan> {
    decide::Window rescaled = window;
    if (const std::vector<double> ratio = factors.settle(calibration); !ratio.empty()) rescaled.rescale(ratio);
    decide::Platform platform = make_platform(names, nodes, calibration);
    platform.T = truth.T, platform.Mig = truth.Mig;
    std::vector<RankFacts> ranks;
    std::vector<std::uint32_t> taken(truth.processors.size());
    for (const decide::Rank& rank : real.ranks) {
      ++taken[rank.processor.value];
      ranks.push_back({.node = truth.processor(rank.processor).name,
                       .memory_bytes = rank.memory_bytes,
                       .last_move = rank.last_move.value,
                       .blocked_reason = "",
                       .partners = rank.partners});
      for (const ProcessorId p : rank.left) ranks.back().left.push_back(truth.processor(p).name);
    }
    const decide::Snapshot known = make_snapshot(platform, ranks, nodes);
    BSP_TRY(decide::Plan plan, decide::make_plan(known, rescaled, params));
    for (decide::Move& move : plan.moves) {
      const std::string& node = known.platform.processor(move.to).name;
      std::uint32_t p = 0;
      while (truth.processors[p].name != node || taken[p] >= truth.processors[p].slots) ++p;
      ++taken[p];
      move.to = {p}, move.from = real.ranks[move.rank.value].processor;
    }
    return plan;
  };
  return run_loop(job, loop.params, loop.noise, seed, planner, view);
}

}  // namespace bsp::observe
