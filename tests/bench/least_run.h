// A lower bound of a whole run, whoever decides it and whatever is known: no sequence of mappings and waves is shorter.
//
//   run  =  Σ over supersteps (Time + Comm of the mapping then)  +  Σ over waves pause
//        ≥  steps · (Time(m) + Comm(m)) + D(m)
//
// m is the mapping with the shortest superstep of all that are used, and D(m) = max over the ranks that are not at home in m
// of D(i, Set): whatever way a rank takes there, over whichever Sets, each of its moves is in a wave whose pause is no
// shorter than its Mem, so that the pauses add up to the shortest way at least.
//
// The right side is bounded cell by cell. The cells cover all mappings but "nobody moves", which is known exactly:
//
//   τ_k < Time(m) ≤ τ_k+1  and  μ_l ≤ D(m) ≤ μ_l+1     →     run ≥ steps·(τ_k + κ) + μ_l
//
// if no mapping has Time ≤ τ_k+1, D ≤ μ_l+1 and Comm ≤ κ. That is proved by what such a mapping would have to be like:
//
//   work       all of it ≤ τ · what the nodes can do
//   slots      of those on a node, the s-th largest does ≤ τ·available ÷ s: so slot s takes only ranks as small, every
//              rank finds one (an assignment of ranks to slots), and no rank goes where D(i, Set) > μ
//   messages   what rank i hears takes ≤ κ in its Set, each partner being in the Set of those that it can be in from where
//              that is soonest; and with one of them in a certain Set, whichever (arc consistency)
//   groups     two that can only be in the same Set belong together, and so do all that are connected in this way: there
//              has to be a Set with a slot for each of them, by the two rules above
//   search     groups into Sets, one after the other, by all of these rules; given up, as if possible, after kNodes
//
// Each only leaves out what can't be, so that a mapping that exists is never ruled out. Shared links are left out of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/bench/closed_loop.h"

namespace bsp::decide {

class LeastRun {
 public:
  explicit LeastRun(const LoopJob& job)
      : job_(job), ranks_(job.work.size()), sets_(job.start.platform.sets.size()), by_size_(ranks_) {
    const Platform& platform = job.start.platform;
    way_ = Grid<double>(ranks_, sets_);
    for (std::size_t i = 0; i < ranks_; ++i) shortest_ways(i);
    slots_of_.resize(sets_);
    for (std::uint32_t p = 0; p < platform.processors.size(); ++p)
      for (std::uint32_t s = 1; s <= platform.processors[p].slots; ++s)
        slots_of_[platform.processors[p].set.value].push_back({platform.processors[p].available() / s, p});
    for (std::vector<Slot>& slots : slots_of_)
      std::ranges::sort(slots, {}, [](const Slot& s) { return std::tuple(-s.takes, s.processor); });
    for (std::size_t j = 0; j < sets_; ++j) {
      double sum = 0;
      for (const Processor& p : platform.processors) sum += p.set.value == j ? p.available() : 0;
      capacity_.push_back(sum);
    }
    std::iota(by_size_.begin(), by_size_.end(), 0u);
    std::ranges::sort(by_size_, {}, [&](std::uint32_t i) { return std::pair(-job.work[i], i); });
  }

  // s.
  double seconds() {
    const double steps = static_cast<double>(job_.supersteps);
    std::vector<ProcessorId> home;
    for (const Rank& rank : job_.start.ranks) home.push_back(rank.processor);
    double least = steps * job_.superstep_seconds(home);  // nobody moves
    const double tau0 = least_time(), kappa0 = least_comm();
    std::vector<double> tau{tau0}, mu;
    while (tau.back() < kFine * tau0) tau.push_back(tau.back() * kFineStep);
    while (tau.back() < kCoarse * tau0) tau.push_back(tau.back() * kCoarseStep);
    tau.push_back(kNone);
    for (std::size_t i = 0; i < ranks_; ++i)
      for (std::size_t j = 0; j < sets_; ++j) mu.push_back(way_[i, j]);
    std::ranges::sort(mu);
    std::vector<double> level;
    for (std::size_t n = 0; n <= kPauses; ++n) {
      const double value = mu[(mu.size() - 1) * n / kPauses];
      if (level.empty() || value > level.back()) level.push_back(value);
    }
    level.push_back(kNone);

    struct Cell {
      double at_least;
      std::size_t k, l;
    };
    std::vector<Cell> cells;
    for (std::size_t k = 0; k + 1 < tau.size(); ++k)
      for (std::size_t l = 0; l + 1 < level.size(); ++l) cells.push_back({steps * (tau[k] + kappa0) + level[l], k, l});
    std::ranges::sort(cells, {}, &Cell::at_least);
    for (const Cell& cell : cells) {
      if (!(cell.at_least < least)) break;
      // As far as this cell can matter: a larger κ would make no difference.
      const double most = (least - level[cell.l]) / steps - tau[cell.k];
      const double kappa = impossible_comm(tau[cell.k + 1], level[cell.l + 1], kappa0, most);
      least = std::min(least, steps * (tau[cell.k] + kappa) + level[cell.l]);
    }
    return least;
  }

  // Whether a mapping may exist with no more than these, s. False: there is none.
  bool may_exist(double tau, double kappa, double mu) {
    tau_ = tau * kEqual, kappa_ = kappa * kEqual, mu_ = mu * kEqual;
    return open_sets() && hear() && everyone_finds_a_slot() && group() && place_groups();
  }

 private:
  struct Slot {
    double takes;  // instructions/s: work ≤ τ · takes
    std::uint32_t processor;
  };
  using Sets = std::uint32_t;  // a bit each

  static constexpr double kNone = std::numeric_limits<double>::infinity(), kEqual = 1 + 1e-9;
  static constexpr double kFine = 1.1, kFineStep = 1.004, kCoarse = 2, kCoarseStep = 1.03, kClose = 1.02;
  static constexpr std::size_t kPauses = 10;
  static constexpr int kNodes = 400;

  // From where rank i is to every Set, in as many moves as one likes, at least one.
  void shortest_ways(std::size_t i) {
    const Platform& platform = job_.start.platform;
    const auto mem = [&](std::size_t a, std::size_t b) {
      return job_.start.ranks[i].memory_bytes * platform.T[a, b] + platform.Mig[0, b];
    };
    const std::size_t from = job_.set_of(job_.start.ranks[i].processor).value;
    for (std::size_t j = 0; j < sets_; ++j) way_[i, j] = mem(from, j);
    for (std::size_t n = 1; n < sets_; ++n)
      for (std::size_t a = 0; a < sets_; ++a)
        for (std::size_t b = 0; b < sets_; ++b) way_[i, b] = std::min(way_[i, b], way_[i, a] + mem(a, b));
  }

  [[nodiscard]] double least_time() const {
    std::vector<double> takes;
    double all = 0, sum = 0;
    for (const std::vector<Slot>& slots : slots_of_)
      for (const Slot& slot : slots) takes.push_back(slot.takes);
    for (const double each : capacity_) all += each;
    std::ranges::sort(takes, std::greater());
    for (const double work : job_.work) sum += work;
    double time = sum / all;
    for (std::size_t k = 0; k < ranks_; ++k) time = std::max(time, job_.work[by_size_[k]] / takes[k]);
    return time;
  }
  [[nodiscard]] double least_comm() const {
    double quickest = kNone, most = 0;
    for (std::size_t a = 0; a < sets_; ++a)
      for (std::size_t b = 0; b < sets_; ++b) quickest = std::min(quickest, job_.start.platform.T[a, b]);
    for (const auto& partners : job_.hears) {
      double bytes = 0;
      for (const LoopJob::Partner& k : partners) bytes += k.bytes;
      most = std::max(most, bytes * quickest);
    }
    return most;
  }

  // A Comm that no mapping keeps, as large as can be found between the two.
  double impossible_comm(double tau, double mu, double least, double most) {
    if (!(most > least)) return least;
    if (!may_exist(tau, most, mu)) return most;
    double no = least, yes = most;
    if (least <= 0) return least;
    while (yes > no * kClose) {
      const double middle = std::sqrt(no * yes);
      (may_exist(tau, middle, mu) ? yes : no) = middle;
    }
    return no;
  }

  // The Sets that each rank can be in by its work and its way.
  bool open_sets() {
    open_.assign(ranks_, 0);
    for (std::uint32_t i = 0; i < ranks_; ++i) {
      for (std::uint32_t j = 0; j < sets_; ++j)
        if (std::ranges::any_of(slots_of_[j], [&](const Slot& slot) { return takes(slot, j, i); })) open_[i] |= 1u << j;
      if (open_[i] == 0) return false;
    }
    return true;
  }
  [[nodiscard]] bool takes(const Slot& slot, std::uint32_t j, std::uint32_t i) const {
    if (job_.work[i] > tau_ * slot.takes) return false;
    return slot.processor == job_.start.ranks[i].processor.value || way_[i, j] <= mu_;
  }

  [[nodiscard]] double quickest(std::uint32_t k, std::uint32_t b) const {
    double least = kNone;
    for (std::uint32_t a = 0; a < sets_; ++a)
      if (open_[k] >> a & 1) least = std::min(least, job_.start.platform.T[a, b]);
    return least;
  }
  // The least that rank i takes in Set b for what it hears from all but k.
  [[nodiscard]] double from_others(std::uint32_t i, std::uint32_t b, std::uint32_t k) const {
    double seconds = 0;
    for (const LoopJob::Partner& other : job_.hears[i])
      if (other.from != k)
        seconds += other.bytes * (other.from == i ? job_.start.platform.T[b, b] : quickest(other.from, b));
    return seconds;
  }
  [[nodiscard]] double bytes_of(std::uint32_t i, std::uint32_t k) const {
    double bytes = 0;
    for (const LoopJob::Partner& other : job_.hears[i]) bytes += other.from == k ? other.bytes : 0;
    return bytes;
  }
  // Whether rank i can be in b while k, whom it hears from, is in a.
  [[nodiscard]] bool can_hear(std::uint32_t i, std::uint32_t b, std::uint32_t k, std::uint32_t a) const {
    return from_others(i, b, k) + bytes_of(i, k) * job_.start.platform.T[a, b] <= kappa_;
  }

  bool hear() {
    for (bool again = true; again;) {
      again = false;
      const auto close = [&](std::uint32_t i, std::uint32_t j) {
        open_[i] &= ~(1u << j);
        again = true;
      };
      for (std::uint32_t i = 0; i < ranks_; ++i)
        for (const LoopJob::Partner& partner : job_.hears[i]) {
          const std::uint32_t k = partner.from;
          if (k == i) continue;
          Sets heard = 0;
          for (std::uint32_t b = 0; b < sets_; ++b) {
            if (!(open_[i] >> b & 1)) continue;
            Sets from = 0;
            for (std::uint32_t a = 0; a < sets_; ++a)
              if ((open_[k] >> a & 1) && can_hear(i, b, k, a)) from |= 1u << a;
            heard |= from;
            if (from == 0) close(i, b);
          }
          for (std::uint32_t a = 0; a < sets_; ++a)
            if ((open_[k] >> a & 1) && !(heard >> a & 1)) close(k, a);
          if (open_[i] == 0 || open_[k] == 0) return false;
        }
    }
    return true;
  }

  // An assignment of ranks to slots, by augmenting paths.
  bool everyone_finds_a_slot() {
    holder_.resize(sets_);
    for (std::size_t j = 0; j < sets_; ++j) holder_[j].assign(slots_of_[j].size(), kNobody);
    for (const std::uint32_t i : by_size_) {
      tried_.resize(sets_);
      for (std::size_t j = 0; j < sets_; ++j) tried_[j].assign(slots_of_[j].size(), false);
      if (!finds_a_slot(i)) return false;
    }
    double sum = 0, all = 0;
    for (const double work : job_.work) sum += work;
    for (const double each : capacity_) all += each;
    return sum <= tau_ * all;
  }
  bool finds_a_slot(std::uint32_t i) {
    for (const bool free : {true, false})
      for (std::uint32_t j = 0; j < sets_; ++j) {
        if (!(open_[i] >> j & 1)) continue;
        for (std::size_t s = 0; s < slots_of_[j].size(); ++s) {
          if (tried_[j][s] || (holder_[j][s] == kNobody) != free || !takes(slots_of_[j][s], j, i)) continue;
          tried_[j][s] = true;
          if (!free && !finds_a_slot(holder_[j][s])) continue;
          holder_[j][s] = i;
          return true;
        }
      }
    return false;
  }

  bool group() {
    group_.resize(ranks_);
    std::iota(group_.begin(), group_.end(), 0u);
    for (std::uint32_t i = 0; i < ranks_; ++i)
      for (const LoopJob::Partner& partner : job_.hears[i])
        if (partner.from != i && only_together(i, partner.from)) group_[root(i)] = root(partner.from);
    members_.assign(ranks_, {});
    for (const std::uint32_t i : by_size_) members_[root(i)].push_back(i);
    groups_.clear();
    for (std::uint32_t g = 0; g < ranks_; ++g) {
      if (members_[g].empty()) continue;
      groups_.push_back(g);
      Sets open = ~0u;
      for (const std::uint32_t i : members_[g]) open &= open_[i];
      for (std::uint32_t j = 0; j < sets_; ++j)
        if ((open >> j & 1) && !fits(j, members_[g])) open &= ~(1u << j);
      for (const std::uint32_t i : members_[g]) open_[i] = open;
      if (open == 0) return false;
    }
    return hear();
  }
  std::uint32_t root(std::uint32_t i) {
    while (group_[i] != i) i = group_[i] = group_[group_[i]];
    return i;
  }
  [[nodiscard]] bool only_together(std::uint32_t i, std::uint32_t k) const {
    for (std::uint32_t b = 0; b < sets_; ++b)
      for (std::uint32_t a = 0; a < sets_; ++a)
        if (a != b && (open_[i] >> b & 1) && (open_[k] >> a & 1) && can_hear(i, b, k, a)) return false;
    return true;
  }
  // Ranks, the largest first, in the slots of a Set.
  [[nodiscard]] bool fits(std::uint32_t j, const std::vector<std::uint32_t>& ranks) const {
    if (ranks.size() > slots_of_[j].size()) return false;
    double sum = 0;
    for (std::size_t n = 0; n < ranks.size(); ++n) {
      if (job_.work[ranks[n]] > tau_ * slots_of_[j][n].takes) return false;
      sum += job_.work[ranks[n]];
    }
    return sum <= tau_ * capacity_[j];
  }

  // The largest group first.
  bool place_groups() {
    std::ranges::sort(groups_, {},
                      [&](std::uint32_t g) { return std::pair(-static_cast<std::int64_t>(members_[g].size()), g); });
    in_.assign(sets_, {});
    where_.assign(ranks_, kNobody);
    nodes_ = 0;
    return place(0);
  }
  bool place(std::size_t n) {
    if (n == groups_.size() || ++nodes_ > kNodes) return true;
    const std::vector<std::uint32_t>& members = members_[groups_[n]];
    for (std::uint32_t j = 0; j < sets_; ++j) {
      if (!(open_[members.front()] >> j & 1)) continue;
      if (!std::ranges::all_of(members, [&](std::uint32_t i) { return hears_the_placed(i, j); })) continue;
      std::vector<std::uint32_t> all;
      const auto larger = [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(job_.work[a], b) > std::pair(job_.work[b], a);
      };
      std::ranges::merge(in_[j], members, std::back_inserter(all), larger);
      if (!fits(j, all)) continue;
      std::swap(in_[j], all);
      for (const std::uint32_t i : members) where_[i] = j;
      if (place(n + 1)) return true;
      for (const std::uint32_t i : members) where_[i] = kNobody;
      std::swap(in_[j], all);
    }
    return false;
  }
  [[nodiscard]] bool hears_the_placed(std::uint32_t i, std::uint32_t j) const {
    for (const LoopJob::Partner& k : job_.hears[i])
      if (k.from != i && where_[k.from] != kNobody && !can_hear(i, j, k.from, where_[k.from])) return false;
    for (std::uint32_t k = 0; k < ranks_; ++k)
      if (k != i && where_[k] != kNobody && bytes_of(k, i) > 0 && !can_hear(k, where_[k], i, j)) return false;
    return true;
  }

  static constexpr std::uint32_t kNobody = ~0u;

  const LoopJob& job_;
  std::size_t ranks_, sets_;
  Grid<double> way_;                         // D(i, j), s
  std::vector<std::vector<Slot>> slots_of_;  // by Set, those that take most first
  std::vector<double> capacity_;             // by Set, instructions/s
  std::vector<std::uint32_t> by_size_;       // ranks, the largest first

  double tau_ = 0, kappa_ = 0, mu_ = 0;
  std::vector<Sets> open_;                           // by rank: where it can be
  std::vector<std::vector<std::uint32_t>> holder_;   // by slot
  std::vector<std::vector<bool>> tried_;             // by slot
  std::vector<std::uint32_t> group_, groups_;        // by rank; the roots
  std::vector<std::vector<std::uint32_t>> members_;  // by root, the largest first
  std::vector<std::vector<std::uint32_t>> in_;       // by Set, ranks placed, the largest first
  std::vector<std::uint32_t> where_;                 // by rank: the Set that it was placed in
  int nodes_ = 0;
};

inline double least_run_seconds(const LoopJob& job) { return LeastRun(job).seconds(); }

}  // namespace bsp::decide
