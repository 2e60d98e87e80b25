// How a mapping is reached when the targets of a wave are made before its sources go: wave by wave, each into slots that
// are free when it begins.
//
//   wave 1    who goes to a slot that is free now
//   wave n    who goes to a slot that is free after wave n − 1
//   a ring    ranks that wait for each other's slots: one of them waits on a free slot somewhere, until its own is free
//
// One wave is one plan; the next call, which follows soon, plans the next one anew from what is there then.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operator/decide/strategy.h"

namespace bsp::decide {

struct Waves {
  // After each wave, where everybody is, by rank; the last is the mapping. Empty: it can't be reached.
  std::vector<std::vector<ProcessorId>> after{};
  std::vector<double> pause{};  // of each wave: max Mem of its moves, s
};

// With params.max_moves, a wave has no more than those; then the ones from the slowest processors first.
Waves waves_to(const Case& c, std::span<const double> I, std::span<const ProcessorId> mapping);

}  // namespace bsp::decide
