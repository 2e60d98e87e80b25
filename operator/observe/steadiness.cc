#include "operator/observe/steadiness.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "operator/observe/median.h"

namespace bsp::observe {

void Steadiness::add(std::string_view node, std::size_t ranks, double speed) {
  Node& of_node = nodes_[std::string(node)];
  if (of_node.ranks != ranks) of_node = Node(ranks);
  const double x = std::log(speed);
  if (of_node.samples > 0) of_node.steps += (x - of_node.x) * (x - of_node.x);
  of_node.x = x;
  of_node.sum += x;
  ++of_node.samples;
}

void Steadiness::end_superstep() {
  if (++supersteps_ < kBlock) return;
  supersteps_ = 0;
  end_block();
}

void Steadiness::end_block() {
  std::vector<double> changes;
  double within = 0, steps = 0;
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    Node& node = it->second;
    if (node.samples < kBlock / 2) {  // its rank has gone, or computes now and then
      it = nodes_.erase(it);
      continue;
    }
    const double mean = node.sum / node.samples;
    if (node.last) changes.push_back(mean - *node.last);
    within += node.steps, steps += node.samples - 1;
    node = Node(node.ranks, mean);
    ++it;
  }
  if (changes.size() < kFewest) return;
  const double common = median(changes);
  for (double& d : changes) d = (d - common) * (d - common);
  std::ranges::sort(changes);
  changes.resize(changes.size() - std::max<std::size_t>(1, changes.size() / 4));
  double sum = 0;
  for (const double square : changes) sum += square;
  const double between = kOfAll * sum / static_cast<double>(changes.size()) / 2;
  const double lasting = std::max(0.0, between - kChance * within / steps / 2 / kBlock);
  ++blocks_;
  square_ += std::max(1.0 / blocks_, kWeight) * (lasting - square_);
}

double Steadiness::noise() const { return std::sqrt(square_); }

}  // namespace bsp::observe
