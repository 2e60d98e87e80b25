#include "operator/decide/trial.h"

#include <algorithm>
#include <numeric>

#include "operator/decide/pf.h"

namespace bsp::decide {

Trial::Trial(const Case& c, Processors& processors, std::span<const double> comm_here, std::uint32_t unsorted)
    : c_(c),
      processors_(processors),
      T_to_(transposed(c.snapshot.platform.T)),
      comm_here_(comm_here),
      comm_(comm_of_all()),
      mem_(mem_of_all()),
      first_(c.snapshot.platform.processors.size(), kNobody),
      next_(comm_here.size(), kNobody),
      before_(comm_here.size(), kNobody) {
  std::vector<std::uint32_t> held(first_.size(), 0), order(next_.size());
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t i : order) {
    ++held[on({i}).value];
    if (moved({i})) ++moves_;
  }
  const auto most = std::ranges::max_element(held);
  const std::vector<double>& I = c.metrics.last.instructions;
  if (most != held.end() && *most > unsorted) std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(I[i], i); });
  for (std::uint32_t i : order) link(i, on({i}));  // each before those that are there: the last comes first
}

std::vector<double> Trial::comm_of_all() const {
  std::vector<double> comm(comm_here_.begin(), comm_here_.end());
  for (std::uint32_t i = 0; i < comm.size(); ++i)
    if (moved({i})) comm[i] = Comm_in({i}, set_of(on({i})));
  return comm;
}

std::vector<double> Trial::mem_of_all() const {
  std::vector<double> mem(comm_here_.size(), 0.0);
  for (std::uint32_t i = 0; i < mem.size(); ++i)
    if (moved({i})) mem[i] = Mem_to({i}, set_of(on({i})));
  return mem;
}

double Trial::Comm_in(RankId i, SetId j) const {
  if (j == c_.snapshot.set(i)) return comm_here_[i.value];
  return Comm(c_.metrics.last.recv_bytes.row(i.value), T_to_.row(j.value));
}

double Trial::Mem_to(RankId i, SetId j) const {
  const Snapshot& s = c_.snapshot;
  return s.ranks[i.value].memory_bytes * s.platform.T[s.set(i).value, j.value] + s.platform.Mig_row(i)[j.value];
}

void Trial::link(std::uint32_t i, ProcessorId p) {
  next_[i] = first_[p.value];
  before_[i] = kNobody;
  if (next_[i] != kNobody) before_[next_[i]] = i;
  first_[p.value] = i;
}

void Trial::unlink(std::uint32_t i, ProcessorId p) {
  (before_[i] == kNobody ? first_[p.value] : next_[before_[i]]) = next_[i];
  if (next_[i] != kNobody) before_[next_[i]] = before_[i];
}

void Trial::put(RankId i, ProcessorId to, void (Processors::*how)(RankId, ProcessorId)) {
  unlink(i.value, on(i));
  link(i.value, to);
  if (moved(i)) --moves_;
  (processors_.*how)(i, to);
  if (moved(i)) ++moves_;
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
