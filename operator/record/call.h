// One rescheduling call with its complete input, so that it can be decided again, with the same parameters or others.
//
// The operator or a simulator fills it in; line.h converts it to a line of JSON and back, and replay.h decides it again.
// Plain values, units as in operator/decide/model/model.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "operator/decide/model/model.h"
#include "operator/decide/model/plan.h"

namespace bsp::record {

struct Call {
  // The job. A simulated one has at least a name.
  std::string name_space{}, job{}, uid{};
  std::uint64_t attempt = 0;  // restarts of the job before this run
  std::string time{};         // of the decision, RFC 3339; "": simulated
  decide::Params params{};
  decide::Snapshot snapshot{};
  decide::State state{};                                // at the window's start
  std::vector<decide::MeasuredSuperstep> supersteps{};  // added to the window, in order
  decide::Plan plan{};                                  // the result
};

// Whether the call can be decided again and its plan shown; otherwise names the first invalid field and the remedy. A
// Call that was filled from a Window and its plan is always valid, as long as its numbers could be measurements: finite,
// not negative, at most kMostValue.
Result<void> validate(const Call& call);

// Identifies the run: what its calls, and no others, have in common.
std::string run_of(const Call& call);

// kInvalid unless the call comes after the one of the same run whose plan was made after superstep `last` (0: none).
// A duplicate is valid: an operator that was restarted in between may write the same call twice.
Result<void> check_order(Superstep last, const Call& call);

// Above anything that can be measured (2^64 instructions), and low enough that no formula of operator/decide
// overflows.
inline constexpr double kMostValue = 1e20;
inline constexpr double kLeastCpu = 1e-3;                            // instructions/s
inline constexpr std::uint64_t kMostCount = std::uint64_t{1} << 53;  // supersteps, calls

}  // namespace bsp::record
