// One rescheduling call with all it was decided from: enough to decide it again, under the same parameters or others.
//
// Whoever decides fills it, the operator or a simulator; line.h makes one line of JSON of it and reads it back,
// replay.h decides anew. Plain values, units as in operator/decide/model.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "operator/decide/model.h"
#include "operator/decide/plan.h"

namespace bsp::record {

struct Call {
  // Whose call it is. A simulated job has at least a name.
  std::string name_space{}, job{}, uid{};
  std::uint64_t attempt = 0;  // restarts of the job before this run
  std::string time{};         // of the decision, RFC 3339; "": simulated
  decide::Params params{};
  decide::Snapshot snapshot{};
  decide::State state{};                                // at the window's start
  std::vector<decide::MeasuredSuperstep> supersteps{};  // that were added to the window, in order
  decide::Plan plan{};                                  // that was made
};

// Whether the call can be decided again and its plan be shown: names the first field that does not fit, and the remedy.
// A Call that was filled from a Window and the plan made with it always can, as long as its figures are such as are
// measured: finite, not negative, at most kMostFigure.
Result<void> validate(const Call& call);

// Of which run it is: all that its calls have in common, and no others.
std::string run_of(const Call& call);

// kInvalid if the call does not come after the one of the same run whose plan was made after superstep `last` (0: none);
// the same one told twice, by an operator that was restarted in between, does.
Result<void> check_order(Superstep last, const Call& call);

// Above what any program or machine gives (2^64 instructions), and low enough that no formula of operator/decide
// overflows.
inline constexpr double kMostFigure = 1e20;
inline constexpr double kLeastCpu = 1e-3;                            // instructions/s
inline constexpr std::uint64_t kMostCount = std::uint64_t{1} << 53;  // supersteps, calls

}  // namespace bsp::record
