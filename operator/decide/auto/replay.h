// The window's supersteps computed again under another mapping: what a mapping is worth where work is irregular, so that the
// longest of the means says little of the mean of the longest. And the moves whose worth doesn't depend on the work.
#pragma once

#include <span>
#include <vector>

#include "operator/decide/model/columns.h"
#include "operator/decide/model/model.h"

namespace bsp::decide {

struct Replay {
  static constexpr double kFaster = 0.05;  // ratio, by which a processor has to be faster than another one
};

// The mean over supersteps of max_p Σ_{i on p} I(i) / ((1 − load)·cpu(p)), s. `I`: [superstep][rank] instructions.
double replayed_seconds(const Columns& columns, std::span<const std::vector<double>> I,
                        std::span<const ProcessorId> on);

// The part of a mapping whose moves make no superstep's computation longer, whatever work ranks have: to a faster processor, where
// nobody is but ranks that were together before. By rank, where it is then.
std::vector<ProcessorId> faster_part(const Columns& columns, std::span<const ProcessorId> mapping);

}  // namespace bsp::decide
