#include "operator/decide/pick_tree.h"

#include <algorithm>

#include "operator/decide/lanes.h"

namespace bsp::decide {
namespace {

double least_of_eight(const double* v) {
  const auto smaller = [](Lanes a, Lanes b) { return a < b ? a : b; };
  const Lanes least = smaller(smaller(load(v), load(v + 2)), smaller(load(v + 4), load(v + 6)));
  return std::min(least[0], least[1]);
}

}  // namespace

PickTree::PickTree(std::size_t leaves) {
  std::size_t all = 0;
  for (std::size_t nodes = leaves; nodes > 0; nodes = nodes > kChildren ? (nodes + kChildren - 1) / kChildren : 0) {
    first_.push_back(all);
    all += (nodes + kChildren - 1) / kChildren * kChildren;
  }
  time_.assign(all, kInfinite);
  unit_.assign(all, kHuge);
}

double PickTree::least_time_of(std::size_t at) const { return least_of_eight(time_.data() + at); }
double PickTree::least_unit_of(std::size_t at) const { return least_of_eight(unit_.data() + at); }

void PickTree::plant(std::size_t leaf, double time, double unit) {
  time_[leaf] = time;
  unit_[leaf] = unit;
}

void PickTree::grow() {
  if (empty()) return;
  for (std::size_t level = 1; level < first_.size(); ++level) {
    for (std::size_t below = first_[level - 1], node = first_[level]; below < first_[level];
         below += kChildren, ++node) {
      time_[node] = least_time_of(below);
      unit_[node] = least_unit_of(below);
    }
  }
  least_time_ = least_time_of(first_.back());
  least_unit_ = least_unit_of(first_.back());
}

void PickTree::set(std::size_t leaf, double time, double unit) {
  std::size_t index = leaf;
  for (std::size_t level = 0;; ++level) {
    const std::size_t node = first_[level] + index;
    if (time_[node] == time && unit_[node] == unit) return;  // nothing changes further up
    time_[node] = time;
    unit_[node] = unit;
    index /= kChildren;
    time = least_time_of(first_[level] + index * kChildren);
    unit = least_unit_of(first_[level] + index * kChildren);
    if (level + 1 == first_.size()) break;
  }
  least_time_ = time;
  least_unit_ = unit;
}

void PickTree::close(std::size_t leaf) { set(leaf, kInfinite, kHuge); }

// Among `siblings`, the eight nodes of a level from that one on.
void PickTree::search(std::size_t level, std::size_t siblings, double I, Pick& best) const {
  const double *time = time_.data() + first_[level] + siblings, *unit = unit_.data() + first_[level] + siblings;
  double bound[kChildren];
  const auto first_at = [&](double value) {
    return static_cast<std::size_t>(std::find(bound, bound + kChildren, value) - bound);
  };
  for (std::size_t c = 0; c < kChildren; c += kLanes) store(load(time + c) + I * load(unit + c), bound + c);
  if (level == 0) {
    const double least = least_of_eight(bound);
    if (least > best.time) return;
    const std::size_t leaf = siblings + first_at(least);
    if (least < best.time || leaf < best.leaf) best = {leaf, least};
    return;
  }
  std::size_t leaves = kChildren;  // below a child
  for (std::size_t l = 1; l < level; ++l) leaves *= kChildren;
  const auto visit = [&](std::size_t c) {
    const bool better = bound[c] < best.time || (bound[c] == best.time && (siblings + c) * leaves < best.leaf);
    if (better) search(level - 1, (siblings + c) * kChildren, I, best);
  };
  const std::size_t nearest = first_at(least_of_eight(bound));
  visit(nearest);
  for (std::size_t c = 0; c < kChildren; ++c)
    if (c != nearest) visit(c);
}

std::optional<PickTree::Pick> PickTree::pick(double I, double below) const {
  Pick best{.leaf = 0, .time = below};
  if (empty() || !(least_time(I) < below)) return std::nullopt;
  search(first_.size() - 1, 0, I, best);
  if (!(best.time < below)) return std::nullopt;
  return best;
}

}  // namespace bsp::decide
