#include "operator/decide/fast/pick_tree.h"

#include <algorithm>
#include <utility>

#include "operator/decide/fast/lanes.h"

namespace bsp::decide {
namespace {

double least_of_eight(const double* v) {
  const auto smaller = [](Lanes a, Lanes b) { return a < b ? a : b; };
  const Lanes least = smaller(smaller(load(v), load(v + 2)), smaller(load(v + 4), load(v + 6)));
  return std::min(least[0], least[1]);
}

}  // namespace

PickTree::PickTree(std::size_t leaves, Range range, double same_unit) : range_(range), same_unit_(same_unit) {
  std::size_t all = 0;
  for (std::size_t nodes = leaves; nodes > 0; nodes = nodes > kChildren ? (nodes + kChildren - 1) / kChildren : 0) {
    first_.push_back(all);
    all += (nodes + kChildren - 1) / kChildren * kChildren;
  }
  time_.assign(all, kInfinite);
  if (alike()) return;
  unit_.assign(all, kHuge);
  if (first_.size() < 2) return;
  at_low_.assign(all - first_[1], kHuge);
  at_high_.assign(all - first_[1], kHuge);
}

PickTree::Node PickTree::node_above(std::size_t level, std::size_t at) const {
  const double *time = time_.data() + at, *unit = unit_.data() + at;
  Node node{.time = least_of_eight(time), .unit = least_of_eight(unit)};
  if (level > 0) {
    node.at_low = least_of_eight(at_low_.data() + inner(at));
    node.at_high = least_of_eight(at_high_.data() + inner(at));
    return node;
  }
  for (std::size_t c = 0; c < kChildren; ++c) {
    node.at_low = std::min(node.at_low, time[c] + range_.low * unit[c]);
    node.at_high = std::min(node.at_high, time[c] + range_.high * unit[c]);
  }
  return node;
}

PickTree::Node PickTree::node_at(std::size_t n) const {
  return {time_[n], unit_[n], at_low_[inner(n)], at_high_[inner(n)]};
}

void PickTree::put(std::size_t n, const Node& node) {
  time_[n] = node.time;
  unit_[n] = node.unit;
  at_low_[inner(n)] = node.at_low;
  at_high_[inner(n)] = node.at_high;
}

void PickTree::plant(std::size_t leaf, double time, double unit) {
  time_[leaf] = time;
  if (!alike()) unit_[leaf] = unit;
}

void PickTree::grow() {
  if (empty()) return;
  for (std::size_t level = 1; level < first_.size(); ++level)
    for (std::size_t below = first_[level - 1], n = first_[level]; below < first_[level]; below += kChildren, ++n) {
      if (alike())
        time_[n] = least_of_eight(&time_[below]);
      else
        put(n, node_above(level - 1, below));
    }
  if (alike())
    root_ = {.time = least_of_eight(&time_[first_.back()]), .unit = same_unit_};
  else
    root_ = node_above(first_.size() - 1, first_.back());
}

// Where leaves are alike.
void PickTree::set_time(std::size_t leaf, double time) {
  time_[leaf] = time;
  std::size_t index = leaf / kChildren;
  for (std::size_t level = 1; level < first_.size(); ++level, index /= kChildren) {
    const double least = least_of_eight(&time_[first_[level - 1] + index * kChildren]);
    if (std::exchange(time_[first_[level] + index], least) == least) return;
  }
  root_.time = least_of_eight(&time_[first_.back()]);
}

void PickTree::set(std::size_t leaf, double time, double unit) {
  if (alike()) return set_time(leaf, time);
  if (time_[leaf] == time && unit_[leaf] == unit) return;
  plant(leaf, time, unit);
  std::size_t index = leaf / kChildren;
  for (std::size_t level = 1; level < first_.size(); ++level, index /= kChildren) {
    const Node node = node_above(level - 1, first_[level - 1] + index * kChildren);
    if (node == node_at(first_[level] + index)) return;  // nothing changes further up
    put(first_[level] + index, node);
  }
  root_ = node_above(first_.size() - 1, first_.back());
}

void PickTree::close(std::size_t leaf) { set(leaf, kInfinite, kHuge); }

// The chord is made a little lower than it is, by more than rounding can have lifted it.
PickTree::Asked PickTree::asked(double I) const {
  constexpr double kLower = 1 - 1e-12;
  const double high = range_.low < range_.high ? (I - range_.low) / (range_.high - range_.low) : 0;
  return {.I = I, .low = (1 - high) * kLower, .high = high * kLower};
}

PickTree::Bounds PickTree::bounds(const Asked& a) const {
  const double loose = root_.time + a.I * root_.unit;
  if (alike()) return {loose, loose};
  return {.loose = loose, .tight = std::max(loose, a.low * root_.at_low + a.high * root_.at_high)};
}

// Where leaves are alike: the first that is done at `time`, which is when the soonest is. More time is never a smaller
// sum, so a node has such a leaf below it if and only if its own sum is that.
std::size_t PickTree::first_with(double I, double time) const {
  const double takes = I * same_unit_;
  std::size_t index = 0;
  for (std::size_t level = first_.size(); level-- > 0;) {
    index *= kChildren;
    while (time_[first_[level] + index] + takes != time) ++index;
  }
  return index;
}

// Among `siblings`, the eight nodes of a level from that one on.
void PickTree::search(std::size_t level, std::size_t siblings, const Asked& asked, Pick& best) const {
  const std::size_t at = first_[level] + siblings;
  double bound[kChildren];
  const auto first_at = [&](double value) {
    return static_cast<std::size_t>(std::find(bound, bound + kChildren, value) - bound);
  };
  for (std::size_t c = 0; c < kChildren; c += kLanes)
    store(load(&time_[at + c]) + asked.I * load(&unit_[at + c]), bound + c);
  if (level == 0) {
    const double least = least_of_eight(bound);
    if (least > best.time) return;
    const std::size_t leaf = siblings + first_at(least);
    if (least < best.time || leaf < best.leaf) best = {leaf, least};
    return;
  }
  for (std::size_t c = 0; c < kChildren; c += kLanes) {
    const Lanes loose = load(bound + c),
                chord = asked.low * load(&at_low_[inner(at + c)]) + asked.high * load(&at_high_[inner(at + c)]);
    store(chord > loose ? chord : loose, bound + c);
  }
  std::size_t leaves = kChildren;  // below a child
  for (std::size_t l = 1; l < level; ++l) leaves *= kChildren;
  const auto visit = [&](std::size_t c) {
    const bool better = bound[c] < best.time || (bound[c] == best.time && (siblings + c) * leaves < best.leaf);
    if (better) search(level - 1, (siblings + c) * kChildren, asked, best);
  };
  const std::size_t nearest = first_at(least_of_eight(bound));
  visit(nearest);
  for (std::size_t c = 0; c < kChildren; ++c)
    if (c != nearest) visit(c);
}

std::optional<PickTree::Pick> PickTree::pick(double I, double below) const {
  Pick best{.leaf = 0, .time = below};
  const Asked a = asked(I);
  const double least = bounds(a).tight;
  if (empty() || !(least < below)) return std::nullopt;
  if (alike()) return Pick{first_with(I, least), least};
  search(first_.size() - 1, 0, a, best);
  if (!(best.time < below)) return std::nullopt;
  return best;
}

}  // namespace bsp::decide
