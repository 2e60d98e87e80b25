#include "operator/decide/processors.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "operator/decide/pm.h"

namespace bsp::decide {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kHuge = std::numeric_limits<double>::max();  // unlike ∞, times 0 it is 0

}  // namespace

struct Processors::Best {
  double time = kInfinite;
  std::size_t leaf = 0;
};

Processors::Processors(const Snapshot& snapshot, std::span<const double> I_horizon,
                       std::span<const double> I_last, bool reuse_vacated_slots)
    : I_horizon_(I_horizon.begin(), I_horizon.end()),
      I_last_(I_last.begin(), I_last.end()),
      reuse_vacated_slots_(reuse_vacated_slots),
      trees_(snapshot.platform.sets.size()),
      at_(snapshot.platform.processors.size()),
      slowest_(snapshot.platform.sets.size(), 0.0) {
  const std::vector<Processor>& processors = snapshot.platform.processors;
  const std::vector<std::uint32_t> held = ranks_held(snapshot);

  std::vector<std::vector<ProcessorId>> members(trees_.size());
  for (std::uint32_t p = 0; p < processors.size(); ++p)
    members[processors[p].set.value].push_back(ProcessorId{p});

  for (std::uint32_t j = 0; j < trees_.size(); ++j) {
    std::ranges::stable_sort(members[j], [&](ProcessorId a, ProcessorId b) {
      return processors[a.value].available() > processors[b.value].available();
    });
    const std::size_t width = members[j].empty() ? 0 : std::bit_ceil(members[j].size());
    trees_[j] = {.nodes = nodes_.size(), .leaves = leaves_.size(), .width = width};
    nodes_.resize(nodes_.size() + 2 * width, Node{kInfinite, kHuge, 0});
    const bool closed = snapshot.platform.sets[j].cordoned;
    for (ProcessorId p : members[j]) {
      const Processor& processor = processors[p.value];
      at_[p.value] = {j, static_cast<std::uint32_t>(leaves_.size() - trees_[j].leaves)};
      leaves_.push_back(
          {.unit = 1 / processor.available(),
           .free = closed || processor.cordoned ? 0 : free_slots(processor, held[p.value]),
           .processor = p});
    }
  }

  on_.reserve(snapshot.ranks.size());
  for (std::uint32_t i = 0; i < snapshot.ranks.size(); ++i) {
    const ProcessorId p = snapshot.ranks[i].processor;
    on_.push_back(p);
    place(RankId{i}, leaves_[trees_[at_[p.value].tree].leaves + at_[p.value].leaf], +1);
  }
  for (std::uint32_t j = 0; j < trees_.size(); ++j) {
    if (trees_[j].width == 0) continue;
    Node* nodes = nodes_.data() + trees_[j].nodes;
    for (std::size_t l = 0; l < members[j].size(); ++l)
      nodes[trees_[j].width + l] = node_of(leaves_[trees_[j].leaves + l]);
    for (std::size_t n = trees_[j].width; --n > 0;) nodes[n] = over(nodes[2 * n], nodes[2 * n + 1]);
    slowest_[j] = nodes[1].most_time;
  }
}

void Processors::place(RankId i, Leaf& leaf, double sign) const {
  leaf.ranks += sign > 0 ? 1 : -1u;
  leaf.I_horizon += sign * I_horizon_[i.value];
  leaf.I_last += sign * I_last_[i.value];
  if (leaf.ranks == 0) leaf.I_horizon = leaf.I_last = 0;  // no rounding error stays behind
}

Processors::Node Processors::node_of(const Leaf& leaf) const {
  return {.least_time = leaf.free > 0 ? leaf.I_horizon * leaf.unit : kInfinite,
          .least_unit = leaf.free > 0 ? leaf.unit : kHuge,
          .most_time = leaf.I_last * leaf.unit};
}

Processors::Node Processors::over(const Node& left, const Node& right) {
  return {.least_time = std::min(left.least_time, right.least_time),
          .least_unit = std::min(left.least_unit, right.least_unit),
          .most_time = std::max(left.most_time, right.most_time)};
}

void Processors::refresh(Place at) {
  const Tree& tree = trees_[at.tree];
  Node* nodes = nodes_.data() + tree.nodes;
  std::size_t n = tree.width + at.leaf;
  nodes[n] = node_of(leaves_[tree.leaves + at.leaf]);
  while ((n /= 2) > 0) nodes[n] = over(nodes[2 * n], nodes[2 * n + 1]);
  slowest_[at.tree] = nodes[1].most_time;
}

void Processors::search(const Tree& tree, std::size_t n, double I, Best& best) const {
  const auto bound = [&](std::size_t m) {
    const Node& node = nodes_[tree.nodes + m];
    return node.least_time + I * node.least_unit;
  };
  const auto first_leaf = [&](std::size_t m) {
    return (m << (std::bit_width(tree.width) - std::bit_width(m))) - tree.width;
  };
  const double b = bound(n);
  if (b > best.time || b == kInfinite) return;
  if (b == best.time && first_leaf(n) > best.leaf) return;
  if (n >= tree.width) {
    best = {b, n - tree.width};
    return;
  }
  const bool right_first = bound(2 * n + 1) < bound(2 * n);
  search(tree, 2 * n + (right_first ? 1 : 0), I, best);
  search(tree, 2 * n + (right_first ? 0 : 1), I, best);
}

std::optional<Processors::Pick> Processors::pick(SetId j, RankId i) const {
  const Tree& tree = trees_[j.value];
  if (tree.width == 0) return std::nullopt;
  Best best;
  search(tree, 1, I_horizon_[i.value], best);
  if (best.time == kInfinite) return std::nullopt;
  return Pick{leaves_[tree.leaves + best.leaf].processor, best.time};
}

double Processors::time(ProcessorId p) const {
  const Leaf& leaf = leaves_[trees_[at_[p.value].tree].leaves + at_[p.value].leaf];
  return leaf.I_horizon * leaf.unit;
}

double Processors::slowest() const {
  return slowest_.empty() ? 0 : *std::ranges::max_element(slowest_);
}

void Processors::move(RankId i, ProcessorId to) {
  const auto leaf_at = [&](Place at) -> Leaf& { return leaves_[trees_[at.tree].leaves + at.leaf]; };
  const Place source = at_[on_[i.value].value], target = at_[to.value];
  Leaf& vacated = leaf_at(source);
  Leaf& taken = leaf_at(target);
  check(taken.free > 0, "a rank moves only to a free slot");
  place(i, vacated, -1);
  if (reuse_vacated_slots_) ++vacated.free;
  place(i, taken, +1);
  --taken.free;
  on_[i.value] = to;
  refresh(source);
  refresh(target);
}

}  // namespace bsp::decide
