#include "operator/observe/cpu_facts.h"

#include <algorithm>
#include <utility>

namespace bsp::observe {

CpuFacts::CpuFacts(const std::vector<NodeFacts>& nodes, std::vector<RankCpu> ranks)
    : nodes_(nodes), ranks_(std::move(ranks)) {
  for (const NodeFacts& node : nodes_)
    if (node.cpu_features.known()) of_node_[node.name] = node.cpu_features;
  for (const RankCpu& rank : ranks_) {
    if (rank.cpu.known() && !rank.node.empty()) of_node_[rank.node] = rank.cpu;
    closed_[rank.seen.bits()];
  }
  for (auto& [bits, closed] : closed_) {
    const CpuFeatures seen(bits);
    std::map<std::string_view, std::pair<bool, CpuFeatures>> sets;  // whether a node will do, and what another lacks
    for (const NodeFacts& node : nodes_) {
      auto& [fits, lacking] = sets[node.set];
      // A node of which nothing is known is taken for one like those of its Set.
      const CpuFeatures has = of_node(node.name), lacks = has.lacks(seen);
      fits |= has.known() && !lacks.known();
      if (lacks.known()) lacking = lacks;
    }
    for (const auto& [set, found] : sets)
      if (!found.first && found.second.known()) closed.push_back({std::string(set), found.second});
    for (const NodeFacts& node : nodes_)
      if (sets[node.set].first && of_node(node.name).lacks(seen).known()) odd_[node.name] = true;
  }
}

CpuFeatures CpuFacts::of_node(std::string_view node) const {
  const auto known = of_node_.find(node);
  return known == of_node_.end() ? CpuFeatures() : known->second;
}

CpuFeatures CpuFacts::seen_by(std::uint32_t rank) const {
  return rank < ranks_.size() ? ranks_[rank].seen : CpuFeatures();
}

const std::vector<CpuFacts::Closed>& CpuFacts::closed_to(std::uint32_t rank) const {
  static const std::vector<Closed> none;
  const auto closed = closed_.find(seen_by(rank).bits());
  return closed == closed_.end() ? none : closed->second;
}

CpuFacts::Common CpuFacts::common(const std::vector<std::string>& sets) const {
  Common common{.features = CpuFeatures(~0ull), .unknown_sets = {}};
  bool any = false;
  const auto count = [&](CpuFeatures features) {
    if (features.known()) common.features = common.features.and_in(features);
    any |= features.known();
    return features.known();
  };
  for (const std::string& set : sets) {
    bool known = false;
    for (const NodeFacts& node : nodes_)
      if (node.set == set) known |= count(of_node(node.name));
    for (const RankCpu& rank : ranks_)
      if (rank.set == set) known |= count(rank.cpu);  // its node may be cordoned or gone, and no longer listed
    if (!known) common.unknown_sets.push_back(set);
  }
  if (!any) common.features = {};
  return common;
}

}  // namespace bsp::observe
