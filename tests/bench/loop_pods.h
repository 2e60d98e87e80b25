// The pods of a simulated job, as the operator makes them: a wave creates one on each node that ranks go to, unless they take a free seat
// of one that is there. Written for itself, so that it checks decide's own account (auto/pods.h).
#pragma once

#include <cstdint>
#include <map>
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
    for (const Processor& p : start.platform.processors) seat_.push_back(p.pod == 0 ? 0 : kGiven + p.pod);
    for (std::size_t i = 0; i < on_.size(); ++i) sit(i);
  }

  [[nodiscard]] bool share(std::size_t i, std::size_t k) const { return of_rank_[i] == of_rank_[k]; }

  // A wave, after which the ranks are there.
  void move(const std::vector<ProcessorId>& after) {
    if (platform_->shared.empty() || after == on_) return;
    std::map<std::uint64_t, int> staying;
    for (std::size_t i = 0; i < on_.size(); ++i)
      if (after[i] == on_[i]) ++staying[of_rank_[i]];
    std::map<std::string, std::uint64_t> made;  // by node
    for (std::size_t i = 0; i < on_.size(); ++i) {
      if (after[i] == on_[i]) continue;
      const std::uint64_t seat = seat_[after[i].value];
      if (seat != 0 && staying[seat] > 0) {
        of_rank_[i] = seat;
        continue;
      }
      std::uint64_t& pod = made[platform_->processor(after[i]).name];
      of_rank_[i] = pod = pod == 0 ? next_++ : pod;
    }
    on_ = after;
    for (std::size_t i = 0; i < on_.size(); ++i) sit(i);
    std::map<std::uint64_t, int> ranks;
    for (const std::uint64_t pod : of_rank_) ++ranks[pod];
    for (std::uint64_t& seat : seat_)
      if (ranks[seat] == 0) seat = 0;
  }

  // Writes what the decision is told into `known`.
  void tell(Snapshot& known) const {
    if (platform_->shared.empty()) return;
    for (std::size_t i = 0; i < on_.size(); ++i) known.ranks[i].pod = number(of_rank_[i]);
    for (std::size_t p = 0; p < seat_.size(); ++p) known.platform.processors[p].pod = number(seat_[p]);
    for (const ProcessorId p : on_) known.platform.processors[p.value].pod = 0;
  }

 private:
  static constexpr std::uint64_t kGiven = 1u << 20;
  static std::uint32_t number(std::uint64_t pod) { return static_cast<std::uint32_t>(pod); }
  // A processor of one rank is a seat of the pod that the rank is in.
  void sit(std::size_t i) {
    if (platform_->processor(on_[i]).slots == 1) seat_[on_[i].value] = of_rank_[i];
  }

  const Platform* platform_;
  std::vector<ProcessorId> on_;
  std::vector<std::uint64_t> of_rank_;
  std::vector<std::uint64_t> seat_;  // by processor; 0: of none
  std::uint64_t next_ = 1;
};

}  // namespace bsp::decide
