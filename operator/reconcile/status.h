// The parts of a job's status that only mirror the world: conditions, places, counts.
#pragma once

#include "operator/decide/plan.h"
#include "operator/reconcile/observed.h"

namespace bsp::reconcile {

// Conditions, ranks per Set, blocked reasons, superstep. A second call changes nothing.
// The type of the condition that warns of a CPU limit that throttles a rank.
inline constexpr const char* kCpuThrottled = "CPUThrottled";
// That condition, where the template has a CPU limit at all. True if it has just turned to True.
bool warn_of_throttling(const Observed& o, crds::BspJobStatus& status);

void refresh_status(const Observed& o, crds::BspJobStatus& status);

// A plan as it is shown in status.lastDecision.
crds::Decision to_decision(const decide::Plan& plan, const decide::Snapshot& snapshot, Time now, double imbalance,
                           crds::ReschedulingMode mode);

}  // namespace bsp::reconcile
