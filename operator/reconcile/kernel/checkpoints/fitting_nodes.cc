#include "operator/reconcile/kernel/checkpoints/fitting_nodes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "operator/decide/model/mapping.h"
#include "operator/reconcile/kernel/checkpoints/resumption.h"
#include "operator/reconcile/kernel/checkpoints/skew.h"
#include "operator/reconcile/kernel/start/start_platform.h"

namespace bsp::reconcile {
namespace {

class Fit {
 public:
  Fit(const crds::StoredSet& set, const std::vector<std::uint32_t>& ranks, const Observed& o)
      : skew_(set, o.job.spec.ranks) {
    // Many ranks have seen the same.
    for (const std::uint32_t rank : ranks)
      if (const CpuFeatures seen = skew_.seen(rank); seen.known() && !std::ranges::contains(seen_, seen))
        seen_.push_back(seen);
    for (const crds::RankPlace& place : o.job.status.ranks)
      if (const wire::RankStatus* s = o.said(place.seat()))
        if (const PodFacts* pod = o.pod(place.seat())) says_[pod->node] = CpuFeatures(s->cpu_features);
    for (const observe::NodeFacts& node : o.nodes) {
      auto& [fits, lacks] = sets_[node.set];
      fits |= cpu_of(node).known() && !is_unfit(node);
      lacks |= is_unfit(node);
    }
  }

  // For one of them.
  [[nodiscard]] bool is_unfit(const observe::NodeFacts& node) const {
    return std::ranges::any_of(seen_, [&](CpuFeatures seen) { return cpu_of(node).lacks(seen).known(); });
  }
  [[nodiscard]] bool is_unfit(const observe::NodeFacts& node, std::uint32_t rank) const {
    return cpu_of(node).lacks(skew_.seen(rank)).known();
  }
  // A node of which nothing is known is taken for one like those of its Set.
  [[nodiscard]] bool may_be_unfit(const observe::NodeFacts& node) const {
    const auto set = sets_.find(node.set);
    return is_unfit(node) || (set != sets_.end() && set->second.second && !set->second.first);
  }
  // Each has a node that may do.
  [[nodiscard]] bool each_may_fit(const std::vector<observe::NodeFacts>& nodes) const {
    return std::ranges::all_of(seen_, [&](CpuFeatures seen) {
      return std::ranges::any_of(nodes,
                                 [&](const observe::NodeFacts& node) { return !cpu_of(node).lacks(seen).known(); });
    });
  }

 private:
  [[nodiscard]] CpuFeatures cpu_of(const observe::NodeFacts& node) const {
    const auto said = says_.find(node.name);
    return said != says_.end() && said->second.known() ? said->second : node.cpu_features;
  }

  const Skew skew_;
  std::vector<CpuFeatures> seen_;
  std::map<std::string, CpuFeatures> says_;            // by node
  std::map<std::string, std::pair<bool, bool>> sets_;  // a node fits, one doesn't
};

std::vector<std::uint32_t> all_ranks(const Observed& o) {
  std::vector<std::uint32_t> ranks(o.job.spec.ranks);
  std::ranges::iota(ranks, 0u);
  return ranks;
}

auto mapping_to(const std::vector<observe::NodeFacts>& nodes, const Observed& o) {
  return decide::initial_mapping(o.job.spec.initial_mapping, o.job.spec.ranks, platform_at_start(o, nodes));
}

// As they would be mapped, without regard to what their CPUs have, which differs where ranks have seen different ones.
bool fit_as_mapped(const std::vector<observe::NodeFacts>& nodes, const Fit& fit, const Observed& o) {
  const auto platform = platform_at_start(o, nodes);
  const auto mapping = mapping_to(nodes, o);
  if (!mapping) return false;
  std::map<std::string_view, const observe::NodeFacts*> by_name;
  for (const observe::NodeFacts& node : nodes) by_name[node.name] = &node;
  for (std::uint32_t rank = 0; rank < mapping->size(); ++rank)
    if (fit.is_unfit(*by_name.at(platform.processor((*mapping)[rank]).name), rank)) return false;
  return true;
}

std::vector<observe::NodeFacts> without(std::vector<observe::NodeFacts> nodes, auto is_out) {
  for (observe::NodeFacts& node : nodes) node.cordoned |= is_out(node);
  return nodes;
}

}  // namespace

std::vector<observe::NodeFacts> nodes_to_resume_on(const crds::StoredSet& set, const Observed& o,
                                                   std::vector<observe::NodeFacts> nodes) {
  if (o.queued) return nodes;
  const Fit fit(set, all_ranks(o), o);
  const auto has_failed = [&](const observe::NodeFacts& node) { return node.name == set.suspected_on; };
  if (std::ranges::none_of(nodes, [&](const auto& node) { return fit.is_unfit(node) || has_failed(node); }))
    return nodes;
  if (auto rest = without(nodes, has_failed); fit_as_mapped(rest, fit, o)) return rest;
  for (const bool of_set : {true, false})
    for (const bool failed : {true, false}) {
      auto rest = without(nodes, [&](const observe::NodeFacts& node) {
        return (of_set ? fit.may_be_unfit(node) : fit.is_unfit(node)) || (failed && has_failed(node));
      });
      if (mapping_to(rest, o)) return rest;
    }
  return nodes;
}

std::vector<std::string> unfit_nodes(const crds::StoredSet& set, std::span<const std::uint32_t> ranks,
                                     const std::string& of_set, const Observed& o) {
  const Fit fit(set, {ranks.begin(), ranks.end()}, o);
  std::vector<std::string> unfit;
  for (const observe::NodeFacts& node : o.nodes)
    if (node.set == of_set && fit.is_unfit(node)) unfit.push_back(node.name);
  return unfit;
}

bool may_fit(const crds::StoredSet& set, const Observed& o) {
  const Fit fit(set, all_ranks(o), o);
  if (o.capacity_may_come) return fit.each_may_fit(o.nodes);
  return mapping_to(without(o.nodes, [&](const observe::NodeFacts& node) { return fit.is_unfit(node); }), o)
      .has_value();
}

}  // namespace bsp::reconcile
