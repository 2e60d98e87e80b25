#include "operator/decide/bottleneck/trial.h"

#include <algorithm>
#include <numeric>

#include "operator/decide/model/pm.h"

namespace bsp::decide {

Trial::Trial(const Case& c, Processors& processors, std::span<const double> comm_here, const CommOf& comm_of,
             std::uint32_t unsorted)
    : c_(c),
      processors_(processors),
      comm_here_(comm_here),
      comm_of_(comm_of),
      comm_(comm_here.size(), [this](std::uint32_t i) { return Comm_in({i}, set_of(on({i}))); }),
      mem_(comm_here.size(), [this](std::uint32_t i) { return moved({i}) ? Mem_to({i}, set_of(on({i}))) : 0; }),
      first_(c.columns.set.size(), kNoRank),
      next_(comm_here.size(), kNoRank),
      before_(comm_here.size(), kNoRank),
      noted_(comm_here.size()) {
  std::vector<std::uint32_t> held(first_.size(), 0), order(next_.size());
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t i : order) {
    ++held[on({i}).value];
    note({i}, false);
  }
  const auto most = std::ranges::max_element(held);
  const std::vector<double>& I = c.metrics.last.instructions;
  if (most != held.end() && *most > unsorted)
    std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(I[i], i); });
  for (std::uint32_t i : order) link(i, on({i}));  // each before those that are there: the last comes first
}

double Trial::Comm_in(RankId i, SetId j) const {
  return j == c_.columns.own[i.value] ? comm_here_[i.value] : comm_of_(i, j);
}

double Trial::Mem_to(RankId i, SetId j) const { return Mem(c_, i, j); }

void Trial::link(std::uint32_t i, ProcessorId p) {
  next_[i] = first_[p.value];
  before_[i] = kNoRank;
  if (next_[i] != kNoRank) before_[next_[i]] = i;
  first_[p.value] = i;
}

void Trial::unlink(std::uint32_t i, ProcessorId p) {
  (before_[i] == kNoRank ? first_[p.value] : next_[before_[i]]) = next_[i];
  if (next_[i] != kNoRank) before_[next_[i]] = before_[i];
}

// Enters rank i among the moved, or strikes it out, if that has changed.
void Trial::note(RankId i, bool was_moved) {
  if (moved(i) == was_moved) return;
  if (was_moved) {
    const std::uint32_t last = moved_ranks_.back();
    moved_ranks_[noted_[last] = noted_[i.value]] = last;
    moved_ranks_.pop_back();
  } else {
    noted_[i.value] = static_cast<std::uint32_t>(moved_ranks_.size());
    moved_ranks_.push_back(i.value);
  }
}

void Trial::put(RankId i, ProcessorId to, void (Processors::*how)(RankId, ProcessorId)) {
  unlink(i.value, on(i));
  link(i.value, to);
  const bool was_moved = moved(i);
  (processors_.*how)(i, to);
  note(i, was_moved);
  comm_.set(i.value, Comm_in(i, set_of(to)));
  mem_.set(i.value, moved(i) ? Mem_to(i, set_of(to)) : 0);
}

void Trial::relocate(RankId i, ProcessorId to) {
  log_.push_back({i, on(i)});
  put(i, to, &Processors::move);
}

void Trial::back_to(std::size_t earlier) {
  while (log_.size() > earlier) {
    put(log_.back().rank, log_.back().from, &Processors::undo);
    log_.pop_back();
  }
}

}  // namespace bsp::decide
