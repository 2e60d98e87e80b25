// A Set of whose speed nothing is known (Set::untried) and that nobody would go to by the assumption may be faster than assumed. One
// rank alone finds out, once, when that is cheap:
//
//   hope   Auto's plan if the untried Sets were kHoped times as fast as assumed pays, with the explorer's pause and kMeasured
//          supersteps that the others begin later counted
//   risk   pause there,                                                                                            s
//          + pause back + kMeasured · what a superstep is longer, if it is, with the explorer in a Set that is kPoor times as fast
//   price  owed + risk ≤ kRisk · time so far; of the time that is left, if the job's length is known
//   who    of the kConsidered ranks with the least work the one with the least risk; equal: the one with less work. One with less
//          than kEnough of the mean work isn't asked: what it measures is mostly noise
//   unseen what a superstep is longer with the explorer in a Set that is as fast as assumed, by its messages for instance: noise may
//          hide that, and then the rank stays there. No more than kRisk of a superstep; if the length is known, all of it is risk
//
// Where work is only CPU time (Params::timed_work) every Set looks equally fast, and so nobody explores.
//
// A rank that computes half as long as the slowest one risks only its pause. The Set is measured by the first superstep there, so that
// it isn't explored again; a restarted operator knows its speed from the job's status. A move that failed has measured nothing,
// but the job owes its pause.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "operator/decide/auto/auto_search.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

struct Exploring {
  static constexpr double kHoped = 2, kPoor = 0.5;  // ratios of the assumed speed
  static constexpr double kEnough = 0.25;           // of the mean work
  static constexpr std::size_t kConsidered = 16;    // ranks
};

struct Exploration {
  // Supersteps until it can be paid for; 0: it begins now, and only then the rest is set. Infinite: there is nothing to hope for.
  double after = std::numeric_limits<double>::infinity();
  std::vector<ProcessorId> on{};  // by rank, where all are then
  double pause = 0;               // s
  double F = 0;                   // of what is hoped for, s
};

// `steady`: `c` with the window's mean work; `assumed`: a search of it over H. `sure`: what counts as a gain, of a superstep.
Exploration explore(const Case& c, const Case& steady, const AutoSearch& assumed, double H, double sure, double owed);

}  // namespace bsp::decide
