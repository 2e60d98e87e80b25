// A Set in which none of the job's ranks has run, and of whose speed nothing is known but an assumption (Set::untried), is
// tried with one rank before others follow.
//
//   a plan with moves to untried Sets → one of these moves alone, the first by
//     1  max Time + max Comm of a superstep with only this rank moved, if the Set is as fast as assumed; those that differ by less
//        than what counts as a gain (Rules::least_gain) are equal                                                      s
//     2  I(i): a rank with less work makes a superstep less longer if the Set is slower
//     3  Mem(i, target): what going there costs, and coming back
//
// What follows is measured: the Set is not untried any more, so the next call decides on the others by its real speed. Auto
// calls after kMeasured supersteps and takes the rank back if they were longer (take_back.h). It tries only if the whole plan
// still pays with the trial's pause and with kMeasured supersteps that the others begin later, and if the window before is
// long enough to compare with; else the next window is. The published heuristics go on at their own pace.
// A Set that no plan goes to is Auto's to explore (explore.h).
#pragma once

#include <cstdint>

#include "operator/decide/auto/take_back.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

// Makes a trial of a heuristic's plan, if it has to be one; before its PM list is moved into it. Returns how many supersteps the
// next window has to have for that; 0: as many as it would have.
std::uint64_t try_with_one_rank(const Case& c, Plan& plan);

}  // namespace bsp::decide
