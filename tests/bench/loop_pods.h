// The pods of a simulated job, as the operator makes them: ranks that go to a node take its free seats, one after the other, and for those
// who find none a wave creates one pod there. Written for itself, so that it checks decide's own account (auto/pods.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/decide/model/model.h"

namespace bsp::decide {

class LoopPods {
 public:
  explicit LoopPods(const Snapshot& start) : platform_(&start.platform) {
    for (const Rank& rank : start.ranks) {
      on_.push_back(rank.processor);
      of_rank_.push_back(rank.pod == 0 ? next_++ : kGiven + rank.pod);
    }
    for (std::uint32_t p = 0; p < start.platform.processors.size(); ++p)
      if (const Processor& of = start.platform.processor({p}); of.pod != 0 && !is_taken({p}))
        free_[of.name].push_back(kGiven + of.pod);
    drop_gone();
  }

  [[nodiscard]] bool share(std::size_t i, std::size_t k) const { return of_rank_[i] == of_rank_[k]; }

  // A wave, after which the ranks are there.
  void move(const std::vector<ProcessorId>& after) {
    if (platform_->shared.empty() || after == on_) return;
    std::set<std::uint64_t> staying;
    for (std::size_t i = 0; i < on_.size(); ++i)
      if (after[i] == on_[i]) staying.insert(of_rank_[i]);
    const std::vector<std::uint64_t> before = of_rank_;
    std::map<std::string, std::uint64_t> made;  // by node
    for (std::size_t i = 0; i < on_.size(); ++i) {
      if (after[i] == on_[i]) continue;
      const std::string& node = platform_->processor(after[i]).name;
      std::vector<std::uint64_t>& seats = free_[node];
      const auto other = std::ranges::find(on_, after[i]);  // that leaves: only where a mapping is taken for one wave
      if (is_taken(after[i])) {
        of_rank_[i] = before[static_cast<std::size_t>(other - on_.begin())];
        if (staying.contains(of_rank_[i])) continue;
      } else if (!seats.empty()) {
        of_rank_[i] = seats.front();
        seats.erase(seats.begin());
        continue;
      }
      std::uint64_t& pod = made[node];
      of_rank_[i] = pod = pod == 0 ? next_++ : pod;
    }
    for (std::size_t i = 0; i < on_.size(); ++i)
      if (after[i] != on_[i] && is_taken(on_[i])) free_[platform_->processor(on_[i]).name].push_back(before[i]);
    on_ = after;
    drop_gone();
  }

  // Writes what the decision is told into `known`.
  void tell(Snapshot& known) const {
    if (platform_->shared.empty()) return;
    for (std::size_t i = 0; i < on_.size(); ++i) known.ranks[i].pod = number(of_rank_[i]);
    auto free = free_;
    for (std::uint32_t p = 0; p < known.platform.processors.size(); ++p) {
      Processor& of = known.platform.processors[p];
      std::vector<std::uint64_t>& seats = free[of.name];
      of.pod = 0;
      if (is_taken({p}) || seats.empty()) continue;
      of.pod = number(seats.front());
      seats.erase(seats.begin());
    }
  }

 private:
  static constexpr std::uint64_t kGiven = 1u << 20;
  static std::uint32_t number(std::uint64_t pod) { return static_cast<std::uint32_t>(pod); }
  // A processor of one rank is a seat of the pod that the rank is in.
  [[nodiscard]] bool is_taken(ProcessorId p) const {
    return platform_->processor(p).slots == 1 && std::ranges::contains(on_, p);
  }
  // A pod without ranks is deleted.
  void drop_gone() {
    const std::set<std::uint64_t> with_ranks(of_rank_.begin(), of_rank_.end());
    for (auto& [node, seats] : free_)
      std::erase_if(seats, [&](std::uint64_t pod) { return !with_ranks.contains(pod); });
  }

  const Platform* platform_;
  std::vector<ProcessorId> on_;
  std::vector<std::uint64_t> of_rank_;
  std::map<std::string, std::vector<std::uint64_t>>
      free_;  // by node, the pods of its free seats, in the order in which ranks take them
  std::uint64_t next_ = 1;
};

}  // namespace bsp::decide
