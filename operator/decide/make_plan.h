// A rescheduling call: from a snapshot and the window that has ended to a plan.
#pragma once

#include "base/core/error.h"
#include "operator/decide/model/means.h"
#include "operator/decide/model/plan.h"

namespace bsp::decide {

// Over how many supersteps the plan counts what it gains: up to the next call (Bottleneck), to the end of the job as far
// as is known (Auto), else α.
double supersteps_counted(const Plan& plan);

// The decision. O(n log n + n·Sets) for n ranks (processors of a Set count as O(log) each where
// their capacities are alike). Errors: parameters or snapshot that do not fit.
Result<Plan> make_plan(const Snapshot& snapshot, const Window& window, const Params& params);

// make_plan (plan.h) is this with fast_means.
Result<Plan> make_plan_with(const Means& means, const Snapshot& snapshot, const Window& window, const Params& params);

}  // namespace bsp::decide
