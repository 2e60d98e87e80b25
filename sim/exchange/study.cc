#include "sim/exchange/study.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/exchange/pools.h"
#include "sim/exchange/runs.h"

namespace bsp::sim::exchange {
namespace {

using bsp::exchange::Mechanism;
using nlohmann::json;

constexpr Variant kAtEverySize[] = {kBest, kNaive, kIncrements, kSnapshot, kSnapshotThreaded};
constexpr std::uint32_t kSourceSizes[] = {64, 128};  // those of the source's tables
constexpr std::uint32_t kSweepSize = 64;
constexpr double kThresholdFactors[] = {0.25, 1, 4, 16};
constexpr std::uint32_t kMostClose = 256;  // decisions close in time are simulated up to this size

std::vector<RunKey> planned(const StudyParams& params) {
  std::vector<RunKey> keys;
  const auto has = [&](std::uint32_t n) { return std::ranges::find(params.sizes, n) != params.sizes.end(); };
  for (const std::uint32_t n : params.sizes)
    for (const Variant v : kAtEverySize) {
      keys.push_back({v, n, false, params.threshold});
      if (n <= kMostClose) keys.push_back({v, n, true, params.threshold});
    }
  for (const std::uint32_t n : kSourceSizes)
    for (const Variant v : {kNaiveThreaded, kIncrementsThreaded})
      if (has(n)) keys.push_back({v, n, false, params.threshold});
  for (const double factor : kThresholdFactors)
    for (const Variant v : {kNaive, kIncrements})
      if (has(kSweepSize)) keys.push_back({v, kSweepSize, false, factor * params.threshold});
  return keys;
}

json solver_runs(const StudyParams& params) {
  Runs runs(params);
  std::vector<RunKey> keys = planned(params);
  std::ranges::sort(keys);
  const auto [from, to] = std::ranges::unique(keys);
  keys.erase(from, to);
  for (const RunKey& key : keys) runs.plan(key);
  runs.run();
  json out = json::array();
  for (const RunKey& key : keys) {
    const RunMean& mean = runs[key];
    out.push_back({{"mechanism", key.variant.mechanism ? json(to_string(*key.variant.mechanism)) : json()},
                   {"threaded", key.variant.threaded},
                   {"processes", key.processes},
                   {"close", key.close},
                   {"threshold", key.threshold},
                   {"messages", mean.messages},
                   {"viewError", mean.outcome.view_error},
                   {"peak", mean.outcome.peak},
                   {"slowdown", mean.slowdown},
                   {"wait", mean.outcome.wait},
                   {"waited", mean.outcome.waited},
                   {"held", mean.outcome.held}});
  }
  return out;
}

json workload_json(const WorkloadParams& w) {
  return {{"tasks", w.tasks},
          {"taskSeconds", w.task_seconds},
          {"taskSigma", w.task_sigma},
          {"imbalanceSigma", w.imbalance_sigma},
          {"fronts", w.fronts},
          {"frontSeconds", w.front_seconds},
          {"frontSigma", w.front_sigma},
          {"frontsFrom", w.fronts_from},
          {"frontsSpread", w.fronts_spread},
          {"slaves", w.slaves},
          {"panelSeconds", w.panel_seconds}};
}

json cluster_json() {
  const Cluster c;
  return {{"latency", c.latency}, {"send", c.send}, {"receive", c.receive}, {"poll", c.poll}};
}

json pools_json(const StudyParams& params) {
  const PoolsParams p;
  json rows = json::array();
  for (const std::uint32_t n : {2u, 4u, 16u, 64u, 256u})
    for (const double burst : {0.0, 1.0})
      for (const Mechanism mechanism : {Mechanism::kNaive, Mechanism::kIncrements, Mechanism::kSnapshot}) {
        const PoolsOutcome r = place_on_pools({.replicas = n, .burst = burst, .seed = params.seed}, mechanism);
        rows.push_back({{"replicas", n},
                        {"burst", burst > 0},
                        {"mechanism", to_string(mechanism)},
                        {"placed", r.placed},
                        {"overbooked", r.overbooked},
                        {"noSlots", r.no_slots},
                        {"messages", r.messages},
                        {"waited", r.waited}});
      }
  return {{"mostSlots", p.most_slots}, {"hold", p.hold},
          {"pools", p.pools},          {"slotsPerReplica", p.slots_for_a_replica},
          {"wanted", p.wanted},        {"thinking", p.thinking},
          {"starting", p.starting},    {"message", p.message},
          {"latency", p.latency},      {"span", p.span},
          {"period", p.period},        {"rows", rows}};
}

json gathered_json(const StudyParams& params, const char* way_name, Gathering way, std::uint32_t ranks,
                   std::uint32_t sets, std::uint32_t supersteps) {
  GatherParams g = params.gather;
  g.ranks = ranks;
  g.sets = sets;
  g.report_bytes += supersteps * params.report_superstep_bytes;
  const Gathered r = gather(way, g);
  return {{"way", way_name},
          {"ranks", ranks},
          {"sets", sets},
          {"supersteps", supersteps},
          {"messages", r.messages},
          {"operatorMessages", r.operator_messages},
          {"connections", r.connections},
          {"operatorBytes", r.operator_bytes},
          {"operatorCpu", r.operator_cpu},
          {"latency", r.latency}};
}

json gathering_json(const StudyParams& params) {
  constexpr std::pair<const char*, Gathering> kWays[] = {
      {"flat", Gathering::kFlat}, {"Set Managers", Gathering::kManagers}, {"condensed", Gathering::kCondensed}};
  const GatherParams& g = params.gather;
  json rows = json::array(), by_sets = json::array();
  for (const std::uint32_t ranks : {1'000u, 10'000u, 100'000u})
    for (const std::uint32_t supersteps : {1u, 10u})
      for (const auto& [name, way] : kWays) rows.push_back(gathered_json(params, name, way, ranks, g.sets, supersteps));
  for (const std::uint32_t sets : {1u, 4u, 16u, 64u, 256u})
    for (const auto& [name, way] : kWays)
      if (way != Gathering::kFlat) by_sets.push_back(gathered_json(params, name, way, 100'000, sets, 1));
  return {{"sets", g.sets},
          {"condensedBytes", g.condensed_bytes},
          {"message", g.message},
          {"byte", g.byte},
          {"interface", g.interface},
          {"latencyBetween", g.latency_between},
          {"latencyWithin", g.latency_within},
          {"reportBytes", g.report_bytes},
          {"superstepBytes", params.report_superstep_bytes},
          {"rows", rows},
          {"bySets", by_sets}};
}

}  // namespace

json run_study(const StudyParams& params) {
  const Runs runs(params);
  return {{"sizes", params.sizes},
          {"seed", params.seed},
          {"repeats", params.repeats},
          {"threshold", params.threshold},
          {"workload", workload_json(runs.workload(kSweepSize, false, 0))},
          {"closeWorkload", workload_json(runs.workload(kSweepSize, true, 0))},
          {"cluster", cluster_json()},
          {"runs", solver_runs(params)},
          {"pools", pools_json(params)},
          {"gathering", gathering_json(params)}};
}

}  // namespace bsp::sim::exchange
