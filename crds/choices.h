// What a job's manifest chooses by name (spec.rescheduling, spec.initialMapping): the API's enums, which are the model's
// too.
#pragma once

#include "base/core/fields.h"

namespace bsp::crds {

using bsp::to_string;

// THE table of heuristics: name, and what help says of it. Adding one touches its own file and this table (and the CRD's
// list of choices, which tests/unit/crds holds against it). operator/decide/model/strategy.h says what a heuristic is.
#define BSP_HEURISTICS(row)                                                                     \
  row(Top, "the rank with the highest PM") row(Percentage, "every rank with PM >= x * MAX(PM)") \
      row(AutoMig, "as many ranks of the PM list as make the superstep shortest")               \
          row(MigCube, "ranks in a cube around the highest PM's terms")                         \
              row(MigHull, "ranks near the segment between the two highest PMs' terms")         \
                  row(Bottleneck, "the moves that make the time to the next call shortest")     \
                      row(Auto, "the moves that make the rest of the job shortest")

#define BSP_ENUMERATOR(name, summary) k##name,
#define BSP_NAME(name, summary) #name,
enum class Heuristic { BSP_HEURISTICS(BSP_ENUMERATOR) };
constexpr auto names_of(Of<Heuristic>) { return std::to_array<std::string_view>({BSP_HEURISTICS(BSP_NAME)}); }
#undef BSP_ENUMERATOR
#undef BSP_NAME

// Over how many supersteps a gain is weighed against its cost.
//   kWindow      viability over the sums of the window; Bottleneck: the supersteps up to the next call; Auto: what is
//                left of the job (operator/decide/auto/auto.h)
//   kSuperstep   the last superstep alone; Bottleneck, Auto: one superstep
enum class Horizon { kWindow, kSuperstep };
constexpr auto names_of(Of<Horizon>) { return std::to_array<std::string_view>({"Window", "Superstep"}); }

// What moves are made for (operator/decide/auto/price.h).
//   kTime      the shortest time
//   kPrice     the lowest price, as long as the job takes hardly longer than in the shortest time
//   kDeadline  the lowest price at which the job ends in time
enum class ObjectiveType { kTime, kPrice, kDeadline };
constexpr auto names_of(Of<ObjectiveType>) { return std::to_array<std::string_view>({"Time", "Price", "Deadline"}); }

// operator/decide/model/mapping.h says where each puts the ranks.
enum class InitialMapping { kContiguous, kAscending, kDescending, kCpu, kRoundRobin };
constexpr auto names_of(Of<InitialMapping>) {
  return std::to_array<std::string_view>({"Contiguous", "Ascending", "Descending", "CPU", "RoundRobin"});
}

}  // namespace bsp::crds
