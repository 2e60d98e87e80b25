// Draws the run with moves: the location of every rank, its computing and waiting time, and the calls with their moves.
//
//   rows      the processors that ever ran a rank, by Set; ranks on the same processor share its row
//   bars      a rank on its processor between two calls, in the colour of the Set where it started; the strong part of
//             the bar is the share of the time in which it computed
//   ticks     rescheduling calls; those that moved ranks are longer and have the superstep's number
//   arrows    moves
//   dashes    the ends of scenarios i and ii
#pragma once

#include <string>

#include "sim/scenario.h"

namespace bsp::sim {

std::string timeline_svg(const Platform& platform, const Workload& workload, const Scenarios& scenarios);

}  // namespace bsp::sim
