#include "operator/observe/snapshot.h"

#include <algorithm>

#include "operator/decide/auto.h"

namespace bsp::observe {

std::vector<std::string> set_names(const crds::SetsSpec& spec, const std::vector<NodeFacts>& nodes) {
  if (!spec.names.empty()) return spec.names;
  std::set<std::string> found;
  for (const NodeFacts& node : nodes) found.insert(node.set);
  return {found.begin(), found.end()};
}

std::map<std::string, double> nominal_speeds(const std::vector<NodeFacts>& nodes,
                                             const std::map<std::string, double>& of_core) {
  std::map<std::string, Estimate> mean;
  for (const NodeFacts& node : nodes) mean[node.set].add(node.speed);
  std::map<std::string, double> out;
  for (const auto& [set, estimate] : mean) {
    const auto core = of_core.find(set);
    out[set] = estimate.value * (core == of_core.end() ? 1 : core->second);
  }
  return out;
}

std::set<std::string> untried_sets(const std::vector<NodeFacts>& nodes, const Calibration& calibration,
                                   const std::map<std::string, double>& of_core) {
  const auto nominal = nominal_speeds(nodes, of_core);
  std::map<std::string, bool> told;  // by Set
  for (const NodeFacts& node : nodes) told.try_emplace(node.set, true).first->second &= node.speed_told;
  const auto measured = [&](const std::string& set) { return calibration.cpu(set, nominal).measured; };
  const bool comparable = std::ranges::any_of(told, [&](const auto& set) { return set.second && measured(set.first); });
  std::set<std::string> untried;
  for (const auto& [set, is_told] : told)
    if (!measured(set) && !of_core.contains(set) && !(is_told && comparable)) untried.insert(set);
  return untried;
}

decide::Platform make_platform(const std::vector<std::string>& sets, const std::vector<NodeFacts>& nodes,
                               const Calibration& calibration, const std::map<std::string, double>& of_core) {
  auto origin = [](bool measured) { return measured ? decide::Origin::kMeasured : decide::Origin::kAssumed; };
  const auto nominal = nominal_speeds(nodes, of_core);
  decide::Platform platform;
  const std::set<std::string> untried = untried_sets(nodes, calibration, of_core);
  for (const std::string& name : sets) platform.sets.push_back({.name = name, .untried = untried.contains(name)});
  for (const NodeFacts& node : nodes) {
    const auto set = std::ranges::find(sets, node.set);
    if (set == sets.end()) continue;
    const auto cpu = calibration.cpu_of_node(node.name, node.set, nominal);
    platform.processors.push_back({.name = node.name,
                                   .set = {static_cast<std::uint32_t>(set - sets.begin())},
                                   .cpu = cpu.value,
                                   .cpu_origin = origin(cpu.measured),
                                   .load = 0,
                                   .slots = node.slots,
                                   .taken = node.taken,
                                   .cordoned = node.cordoned});
  }
  const std::size_t n = sets.size();
  platform.T = decide::Grid<double>(n, n);
  platform.T_origin = decide::Grid<decide::Origin>(n, n, decide::Origin::kAssumed);
  decide::Grid<double> capacity(n, n);
  bool limited = false;
  platform.Mig = decide::Grid<double>(1, n);
  platform.Mig_origin = decide::Grid<decide::Origin>(1, n, decide::Origin::kAssumed);
  for (std::size_t b = 0; b < n; ++b) {
    const auto fixed = calibration.fixed(sets[b]);
    platform.Mig[0, b] = fixed.value;
    platform.Mig_origin[0, b] = origin(fixed.measured);
    for (std::size_t a = 0; a < n; ++a) {
      const auto t = calibration.seconds_per_byte(sets[a], sets[b]);
      platform.T[a, b] = t.value;
      platform.T_origin[a, b] = origin(t.measured);
      limited |= (capacity[a, b] = calibration.capacity(sets[a], sets[b])) > 0;
    }
  }
  if (limited) platform.capacity = std::move(capacity);
  return platform;
}

decide::Snapshot make_snapshot(decide::Platform platform, const std::vector<RankFacts>& ranks) {
  decide::Snapshot snapshot;
  snapshot.platform = std::move(platform);
  const auto& nodes = snapshot.platform.processors;
  const auto index_of = [&](const std::string& name) {
    return static_cast<std::uint32_t>(std::ranges::find(nodes, name, &decide::Processor::name) - nodes.begin());
  };
  for (const RankFacts& rank : ranks) {
    decide::Rank out;
    out.processor = {index_of(rank.node)};
    for (const std::string& node : rank.left)
      if (const std::uint32_t left = index_of(node); left < nodes.size()) out.left.push_back({left});
    out.memory_bytes = rank.memory_bytes;
    out.last_move = {rank.last_move};
    out.not_migratable = rank.blocked_reason;
    out.partners.assign(rank.partners.begin(), rank.partners.end());
    snapshot.ranks.push_back(std::move(out));
  }
  return snapshot;
}

decide::Params make_params(const crds::ReschedulingSpec& spec) {
  decide::Params params;
  decide::take_heuristic(params, spec.heuristic);
  params.alpha0 = spec.alpha;
  params.d0 = spec.d;
  params.omega = spec.omega;
  params.delta = spec.delta;
  params.beta = spec.beta;
  params.x = spec.x;
  params.horizon = spec.horizon;
  params.expected_supersteps = spec.expected_supersteps;
  params.min_gain = spec.min_gain;
  params.cooldown = spec.cooldown_supersteps;
  params.max_moves = spec.max_moves_per_wave;
  params.migrates = spec.mode == crds::ReschedulingMode::kMigrate;
  return params;
}

}  // namespace bsp::observe
