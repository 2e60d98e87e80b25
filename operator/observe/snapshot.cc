#include "operator/observe/snapshot.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "operator/decide/auto/auto.h"

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
                                   .cpu_error = cpu.error,
                                   .load = 0,
                                   .slots = node.slots,
                                   .taken = node.taken,
                                   .cordoned = node.cordoned,
                                   .may_return = cpu.may_return,
                                   .price = node.price});
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

namespace {

using ByName = std::unordered_map<std::string_view, double>;

// NodeFacts::at_full_speed of each.
ByName at_full_speed_of(const std::vector<NodeFacts>& nodes) {
  ByName ranks;
  for (const NodeFacts& node : nodes) ranks.emplace(node.name, std::max(node.at_full_speed, 1.0));
  return ranks;
}

// The slots of nodes as processors: those of the ranks, then the free ones, on the emptiest nodes first. So of slots that are equal for a
// decision a rank gets the one where least is beside it.
class Slots {
 public:
  // `at_full_speed`: of each node, by name.
  Slots(const std::vector<decide::Processor>& nodes, const std::vector<RankFacts>& ranks, const ByName& at_full_speed)
      : nodes_(nodes), of_node_(nodes.size()) {
    for (std::uint32_t n = 0; n < nodes.size(); ++n) index_.emplace(nodes[n].name, n);
    std::vector<std::uint32_t> held(nodes.size());
    std::vector<double> most(nodes.size(), std::numeric_limits<double>::infinity());
    for (const RankFacts& rank : ranks)
      if (const auto n = node(rank.node)) ++held[*n];
    for (std::uint32_t n = 0; n < nodes.size(); ++n)
      if (const auto at = at_full_speed.find(nodes[n].name); at != at_full_speed.end()) most[n] = at->second;
    for (const RankFacts& rank : ranks) {
      const auto n = node(rank.node);
      on_.push_back(!n ? kNowhere : held[*n] <= most[*n] ? add(*n) : shared(*n, held[*n], most[*n]));
    }
    std::vector<std::pair<std::size_t, std::uint32_t>> free;  // how many are on the node before it; node
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      first_free_.push_back(of_node_[n].size());
      const std::size_t before = held[n] + nodes[n].taken;
      const auto slots = static_cast<std::size_t>(std::min<double>(nodes[n].slots, most[n]));
      const std::size_t more = nodes[n].cordoned || slots <= before ? 0 : slots - before;
      for (std::size_t s = 0; s < std::min(more, ranks.size()); ++s) free.emplace_back(before + s, n);
    }
    std::ranges::stable_sort(free, {}, &std::pair<std::size_t, std::uint32_t>::first);
    for (const std::uint32_t n : free | std::views::values) add(n);
    next_home_ = next_back_ = std::vector<std::size_t>(nodes.size());
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i].left.empty() && on_[i] != kNowhere) stays_.insert(on_[i].value);
  }

  [[nodiscard]] ProcessorId of_rank(std::size_t i) const {
    return on_[i] == kNowhere ? ProcessorId{static_cast<std::uint32_t>(all_.size())} : on_[i];
  }

  // Every slot of the nodes that a rank has left. The first is one that it had to itself if every rank were where it began; the last,
  // of a rank that moved in the last wave, a free one to which no other of that wave goes back. If there is none, it is one that is taken.
  [[nodiscard]] std::vector<ProcessorId> left(const RankFacts& rank, bool moved_last) {
    std::vector<std::uint32_t> nodes;
    for (const std::string& name : rank.left)
      if (const auto n = node(name)) nodes.push_back(*n);
    if (nodes.empty()) return {};
    std::vector<ProcessorId> out{home(nodes.front())};
    const std::optional<ProcessorId> back = moved_last ? std::optional(way_back(nodes.back())) : std::nullopt;
    for (const std::uint32_t n : nodes) out.insert(out.end(), of_node_[n].begin(), of_node_[n].end());
    if (back) out.push_back(*back);
    return out;
  }

  // Where free slots are seats of pods. `number_of`: a pod's.
  void give_seats(const FreeSeats& seats, auto number_of) {
    for (const auto& [name, pods] : seats) {
      const auto n = node(name);
      for (std::size_t s = 0; n && s < pods.size() && first_free_[*n] + s < of_node_[*n].size(); ++s)
        all_[of_node_[*n][first_free_[*n] + s].value].pod = number_of(pods[s]);
    }
  }

  [[nodiscard]] std::vector<decide::Processor> processors() && { return std::move(all_); }

 private:
  static constexpr ProcessorId kNowhere{~0u};

  [[nodiscard]] std::optional<std::uint32_t> node(const std::string& name) const {
    const auto it = index_.find(name);
    return it == index_.end() ? std::nullopt : std::optional(it->second);
  }
  ProcessorId add(std::uint32_t n, std::uint32_t taken = 0) {
    const ProcessorId id{static_cast<std::uint32_t>(all_.size())};
    all_.push_back(nodes_[n]);
    all_.back().slots = 1;
    all_.back().taken = taken;
    of_node_[n].push_back(id);
    return id;
  }
  // The one processor of a node that has CPU for `most` ranks and holds more.
  ProcessorId shared(std::uint32_t n, std::uint32_t held, double most) {
    if (!of_node_[n].empty()) return of_node_[n].front();
    const ProcessorId id = add(n);
    all_.back().slots = held;
    all_.back().cpu *= most;
    return id;
  }
  ProcessorId home(std::uint32_t n) {
    for (std::size_t& next = next_home_[n]; next < of_node_[n].size(); ++next)
      if (!stays_.contains(of_node_[n][next].value)) return of_node_[n][next++];
    ++next_home_[n];  // beyond the one that is added
    return add(n, 1);
  }
  ProcessorId way_back(std::uint32_t n) {
    const std::size_t at = first_free_[n] + next_back_[n]++;
    return at < of_node_[n].size() ? of_node_[n][at] : add(n, 1);
  }

  const std::vector<decide::Processor>& nodes_;
  std::unordered_map<std::string_view, std::uint32_t> index_;
  std::vector<decide::Processor> all_;
  std::vector<std::vector<ProcessorId>> of_node_;                // those that ranks are on, free ones, others
  std::vector<std::size_t> first_free_, next_home_, next_back_;  // by node
  std::vector<ProcessorId> on_;                                  // by rank
  std::unordered_set<std::uint32_t> stays_;                      // slots of ranks that never moved
};

std::vector<SetId> numbers_of(const std::vector<std::string>& names, const std::vector<decide::Set>& sets) {
  std::vector<SetId> numbers;
  for (std::uint32_t j = 0; j < sets.size(); ++j)
    if (std::ranges::contains(names, sets[j].name)) numbers.push_back({j});
  return numbers;
}

}  // namespace

decide::Snapshot make_snapshot(decide::Platform platform, const std::vector<RankFacts>& ranks,
                               const std::vector<NodeFacts>& nodes, const FreeSeats& free_seats) {
  std::map<std::string, std::uint32_t> pods;
  const auto number_of = [&](const std::string& pod) {
    return pod.empty() ? 0 : pods.try_emplace(pod, static_cast<std::uint32_t>(pods.size()) + 1).first->second;
  };
  const std::vector<decide::Processor> of_nodes = std::exchange(platform.processors, {});
  Slots slots(of_nodes, ranks, at_full_speed_of(nodes));
  std::uint64_t last_move = 0;
  for (const RankFacts& rank : ranks) last_move = std::max(last_move, rank.last_move);
  decide::Snapshot snapshot;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankFacts& rank = ranks[i];
    snapshot.ranks.push_back({.memory_bytes = rank.memory_bytes,
                              .last_move = {rank.last_move},
                              .left = slots.left(rank, rank.last_move > 0 && rank.last_move == last_move),
                              .not_migratable = rank.blocked_reason,
                              .no_moves_to = numbers_of(rank.no_moves_to, platform.sets),
                              .cpu_differs = numbers_of(rank.cpu_differs, platform.sets),
                              .cpu_lacks = rank.cpu_lacks,
                              .partners = {rank.partners.begin(), rank.partners.end()},
                              .pod = number_of(rank.pod)});
    for (decide::Partner& k : snapshot.ranks.back().partners) k.messages = k.bytes * rank.messages_per_byte;
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) snapshot.ranks[i].processor = slots.of_rank(i);
  snapshot.platform = std::move(platform);
  slots.give_seats(free_seats, number_of);
  snapshot.platform.processors = std::move(slots).processors();
  return snapshot;
}

std::vector<double> slowed_by_each_other(const std::vector<std::string>& node_of_rank,
                                         const std::vector<NodeFacts>& nodes) {
  const ByName most = at_full_speed_of(nodes);
  ByName ranks;
  for (const std::string& node : node_of_rank) ++ranks[node];
  std::vector<double> out;
  for (const std::string& node : node_of_rank) {
    const auto at = most.find(node);
    out.push_back(at == most.end() ? 1 : std::max(1.0, ranks[node] / at->second));
  }
  return out;
}

decide::Params make_params(const crds::ReschedulingSpec& spec, const crds::ObjectiveSpec& objective) {
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
  params.objective = objective.chosen();
  params.max_slowdown = objective.max_slowdown;
  params.migrates = spec.mode == crds::ReschedulingMode::kMigrate;
  return params;
}

}  // namespace bsp::observe
