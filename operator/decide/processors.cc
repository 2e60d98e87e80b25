#include "operator/decide/processors.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "operator/decide/pf.h"
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
    : ranks_(snapshot.ranks),
      reuse_vacated_slots_(reuse_vacated_slots),
      trees_(snapshot.platform.sets.size()),
      at_(snapshot.platform.processors.size()),
      slowest_(snapshot.platform.sets.size(), -1.0) {
  plant_trees(snapshot.platform);
  restart(current_placement(snapshot), I_horizon, I_last);
}

// One leaf per processor, the leaves of a Set side by side in order of capacity.
void Processors::plant_trees(const Platform& platform) {
  std::vector<std::size_t> members(trees_.size(), 0), planted(trees_.size(), 0);
  for (const Processor& p : platform.processors) ++members[p.set.value];
  std::size_t leaves = 0, nodes = 0;
  for (std::size_t j = 0; j < trees_.size(); ++j) {
    const std::size_t width = members[j] == 0 ? 0 : std::bit_ceil(members[j]);
    trees_[j] = {.nodes = nodes, .leaves = leaves, .width = width};
    leaves += members[j];
    nodes += 2 * width;
  }
  leaves_.resize(leaves);
  nodes_.resize(nodes, Node{kInfinite, kHuge, 0});
  for (std::uint32_t p = 0; p < platform.processors.size(); ++p) {
    const Processor& processor = platform.processors[p];
    const std::uint32_t j = processor.set.value;
    const bool cordoned = processor.cordoned || platform.sets[j].cordoned;
    leaves_[trees_[j].leaves + planted[j]++] = {.unit = 1 / processor.available(),
                                                .slots = cordoned ? 0 : free_slots(processor, 0),
                                                .processor = {p}};
  }
  for (std::uint32_t j = 0; j < trees_.size(); ++j) {
    const std::span<Leaf> of_set(leaves_.data() + trees_[j].leaves, members[j]);
    const auto faster_first = [](const Leaf& l) { return std::pair(l.unit, l.processor); };
    if (!std::ranges::is_sorted(of_set, {}, faster_first)) std::ranges::sort(of_set, {}, faster_first);
    for (std::uint32_t l = 0; l < of_set.size(); ++l) at_[of_set[l].processor.value] = {j, l};
  }
}

void Processors::restart(std::span<const ProcessorId> placement, std::span<const double> I_horizon,
                         std::span<const double> I_last) {
  I_horizon_ = I_horizon;
  I_last_ = I_last;
  on_.assign(placement.begin(), placement.end());
  for (Leaf& leaf : leaves_) {
    leaf.I_horizon = leaf.I_last = 0;
    leaf.ranks = leaf.booked = leaf.at_call = 0;
  }
  for (std::uint32_t i = 0; i < on_.size(); ++i) {
    Leaf& at_home = leaf_at(at_[home({i}).value]);
    Leaf& now = leaf_at(at_[on_[i].value]);
    ++at_home.at_call;
    if (!reuse_vacated_slots_) ++at_home.booked;
    if (reuse_vacated_slots_ || on_[i] != home({i})) ++now.booked;
    place({i}, now, +1);
  }
  grow_nodes();
}

void Processors::grow_nodes() {
  slowest_of_all_ = 0;
  for (const Place& at : at_)
    nodes_[trees_[at.tree].nodes + trees_[at.tree].width + at.leaf] = node_of(leaf_at(at));
  for (std::uint32_t j = 0; j < trees_.size(); ++j) {
    if (trees_[j].width == 0) continue;
    Node* nodes = nodes_.data() + trees_[j].nodes;
    for (std::size_t n = trees_[j].width; --n > 0;) nodes[n] = over(nodes[2 * n], nodes[2 * n + 1]);
    slowest_[j] = nodes[1].most_time;
    slowest_of_all_ = std::max(slowest_of_all_, slowest_[j]);
  }
}

void Processors::place(RankId i, Leaf& leaf, double sign) const {
  leaf.ranks += sign > 0 ? 1 : -1u;
  leaf.I_horizon += sign * I_horizon_[i.value];
  leaf.I_last += sign * I_last_[i.value];
  if (leaf.ranks == 0) leaf.I_horizon = leaf.I_last = 0;  // no rounding error stays behind
}

Processors::Node Processors::node_of(const Leaf& leaf) const {
  const bool free = free_slots_of(leaf) > 0;
  return {.least_time = free ? leaf.I_horizon * leaf.unit : kInfinite,
          .least_unit = free ? leaf.unit : kHuge,
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
  while ((n /= 2) > 0) {
    const Node above = over(nodes[2 * n], nodes[2 * n + 1]);
    if (above == nodes[n]) break;  // nothing changes further up
    nodes[n] = above;
  }
  const double before = std::exchange(slowest_[at.tree], nodes[1].most_time);
  if (slowest_[at.tree] >= slowest_of_all_)
    slowest_of_all_ = slowest_[at.tree];
  else if (before == slowest_of_all_)
    slowest_of_all_ = *std::ranges::max_element(slowest_);
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

std::optional<Processors::Pick> Processors::pick(SetId j, RankId i, double below) const {
  const Tree& tree = trees_[j.value];
  if (tree.width == 0) return std::nullopt;
  Best best{.time = below};
  search(tree, 1, I_horizon_[i.value], best);
  if (!(best.time < below)) return std::nullopt;
  return Pick{leaves_[tree.leaves + best.leaf].processor, best.time};
}

double Processors::least_time(SetId j, RankId i) const {
  const Tree& tree = trees_[j.value];
  if (tree.width == 0) return kInfinite;
  const Node& root = nodes_[tree.nodes + 1];
  return root.least_time + I_horizon_[i.value] * root.least_unit;
}

double Processors::time(ProcessorId p) const { return leaf_of(p).I_horizon * leaf_of(p).unit; }

double Processors::time_with(ProcessorId p, RankId i) const {
  const Leaf& leaf = leaf_of(p);
  return (leaf.I_horizon + I_horizon_[i.value]) * leaf.unit;
}

ProcessorId Processors::slowest_processor() const {
  const auto set = std::ranges::max_element(slowest_);  // the first of equals
  const Tree& tree = trees_[static_cast<std::size_t>(set - slowest_.begin())];
  const Node* nodes = nodes_.data() + tree.nodes;
  std::size_t n = 1;
  while (n < tree.width) n = 2 * n + (nodes[2 * n].most_time < nodes[n].most_time ? 1 : 0);
  return leaves_[tree.leaves + n - tree.width].processor;
}

double Processors::slowest_but(ProcessorId p) const {
  const Place at = at_[p.value];
  const Tree& tree = trees_[at.tree];
  double most = 0;
  for (std::size_t n = tree.width + at.leaf; n > 1; n /= 2)
    most = std::max(most, nodes_[tree.nodes + (n ^ 1)].most_time);
  for (std::size_t j = 0; j < slowest_.size(); ++j)
    if (j != at.tree) most = std::max(most, slowest_[j]);
  return most;
}

bool Processors::may_return(RankId i) const {
  const Leaf& leaf = leaf_of(home(i));
  return !reuse_vacated_slots_ || leaf.booked < std::max(leaf.slots, leaf.at_call);
}

void Processors::move(RankId i, ProcessorId to) {
  check(to == home(i) ? may_return(i) : has_free_slot(to), "a rank moves only to a free slot, or back to its own");
  take(i, to);
}

void Processors::undo(RankId i, ProcessorId from) { take(i, from); }

void Processors::take(RankId i, ProcessorId to) {
  const Place source = at_[on(i).value], target = at_[to.value];
  Leaf& vacated = leaf_at(source);
  Leaf& taken = leaf_at(target);
  place(i, vacated, -1);
  if (reuse_vacated_slots_ || on(i) != home(i)) --vacated.booked;
  place(i, taken, +1);
  if (reuse_vacated_slots_ || to != home(i)) ++taken.booked;
  on_[i.value] = to;
  refresh(source);
  refresh(target);
}

}  // namespace bsp::decide
