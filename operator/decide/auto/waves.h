// How a mapping is reached when the targets of a wave are made before its sources go: wave by wave, each into slots that
// are free when it begins.
//
//   wave 1    who goes to a slot that is free now
//   wave n    who goes to a slot that is free after wave n − 1
//   a ring    ranks that wait for each other's slots: one of them waits on a free slot somewhere, until its own is free
//
// Processors of one slot are alike if their Set and speed are the same: which of them a rank gets doesn't matter. So a
// rank that is on one already stays, and any that is free will do; those from the slowest processors go first. In a full
// pool that makes a few waves of what would be a long chain, rank after rank. Where ranks share pods, they are alike on one node only.
//
// One wave is one plan; the next call, which follows soon, plans the next one from the state at that time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operator/decide/model/strategy.h"

namespace bsp::decide {

// The processors that are alike.
class Alike {
 public:
  static constexpr std::uint32_t kNone = ~0u;
  // `node`: by processor, its node; empty: that makes no difference.
  explicit Alike(const Columns& columns, std::span<const std::uint32_t> node = {});
  [[nodiscard]] std::uint32_t kind(ProcessorId p) const { return kind_[p.value]; }  // kNone: like no other
  [[nodiscard]] std::size_t kinds() const { return kinds_; }

 private:
  std::vector<std::uint32_t> kind_;  // by processor
  std::size_t kinds_ = 0;
};

struct Waves {
  // After each wave, where each rank is, by rank; the last is the mapping, or one like it. Empty: it can't be reached.
  std::vector<std::vector<ProcessorId>> after{};
  std::vector<double> pause{};  // of each wave (links.h), s
};

// With params.max_moves, a wave has no more than those; then the ones from the slowest processors first.
Waves waves_to(const Case& c, std::span<const double> I, std::span<const ProcessorId> mapping, const Alike& alike);

}  // namespace bsp::decide
