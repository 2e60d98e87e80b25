#include "operator/observe/slowdowns.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "operator/observe/median.h"
#include "operator/observe/negligible.h"

namespace bsp::observe {

void Slowdowns::add(std::span<const double> work, const std::vector<std::string>& node_of_rank,
                    Calibration& calibration) {
  const std::size_t n = std::min(work.size(), node_of_rank.size());
  ranks_.resize(n);
  const Negligible is_negligible(work.first(n));
  const auto counts = [&](std::size_t i) { return work[i] > 0 && !is_negligible(work[i]); };
  std::vector<double> changes;
  for (std::size_t i = 0; i < n; ++i) {
    Rank& rank = ranks_[i];
    if (rank.node != node_of_rank[i]) moved(rank, node_of_rank[i]);
    if (rank.history == kHistory && rank.left.empty() && counts(i))
      changes.push_back(std::log(work[i]) - rank.level.value);
  }
  const bool comparable = changes.size() >= kFewest;
  const double common = comparable ? median(changes) : 0;
  for (std::size_t i = 0; i < n; ++i)
    if (counts(i)) add(ranks_[i], std::log(work[i]), common, calibration);
  const auto changing =
      std::ranges::count_if(ranks_, [](const Rank& r) { return r.step.samples > 0 && r.left.empty(); });
  const bool common_to_many = !comparable || changing > std::max<std::ptrdiff_t>(1, std::ssize(ranks_) / 4);
  const bool may_suspect = wrong_ < kWrong || slow_nodes_ > wrong_;
  for (Rank& rank : ranks_) {
    if (rank.suspect || !rank.left.empty() || rank.step.samples == 0) continue;
    if (common_to_many || (rank.step.samples >= kSettled && !may_suspect))
      rank.level = std::exchange(rank.step, {}), rank.history = 1;
    else
      rank.suspect = rank.step.samples >= kSettled;
  }
}

void Slowdowns::moved(Rank& rank, const std::string& node) {
  if (rank.suspect)
    rank.left = std::exchange(rank.node, node), rank.suspect = false;
  else
    rank = {.node = node};
}

void Slowdowns::add(Rank& rank, double ln, double common, Calibration& calibration) {
  if (!rank.left.empty()) {
    rank.after.add(ln - common);
    if (rank.after.samples == kSettled) compare(rank, calibration);
    return;
  }
  const double e = ln - common - rank.level.value;
  const bool above = rank.history == kHistory && e > std::max(kStep, kSure * std::sqrt(rank.square));
  if (rank.suspect) {
    rank.level.value += Calibration::kWeight * common;  // as those of the others
    rank.step.add(ln - common);
    rank.back = e < (rank.step.value - rank.level.value) / 2 ? rank.back + 1 : 0;
    if (rank.back == kSettled) ++wrong_, rank.suspect = false, rank.back = 0, rank.step = {};
    return;
  }
  if (above) {
    rank.step.add(ln - common);
    return;
  }
  rank.step = {};
  rank.level.add(ln);
  if (rank.history == kHistory)
    rank.square += Calibration::kWeight * (e * e - rank.square);
  else if (++rank.history > 1)
    rank.square += (e * e - rank.square) / (rank.history - 1);
}

void Slowdowns::compare(Rank& rank, Calibration& calibration) {
  const bool is_slow = rank.after.value < (rank.level.value + rank.step.value) / 2;
  ++(is_slow ? slow_nodes_ : wrong_);
  if (!is_slow) calibration.forget(rank.left);
  rank = {.node = rank.node};
}

void Slowdowns::rescale(std::size_t rank, double ratio) {
  if (rank >= ranks_.size()) return;
  Rank& r = ranks_[rank];
  for (Estimate* ln : {&r.level, &r.step, &r.after}) ln->value += std::log(ratio);
}

double Slowdowns::factor(std::size_t rank) const {
  if (rank >= ranks_.size() || !ranks_[rank].suspect) return 1;
  return std::min(1.0, std::exp(ranks_[rank].level.value - ranks_[rank].step.value));
}

}  // namespace bsp::observe
