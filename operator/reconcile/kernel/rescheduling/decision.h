// A plan, for people.
#pragma once

#include "crds/bspjob.h"
#include "operator/decide/model/plan.h"

namespace bsp::reconcile {

// A plan as status.lastDecision shows it.
crds::Decision to_decision(const decide::Plan& plan, const decide::Snapshot& snapshot, Time now, double imbalance,
                           crds::ReschedulingMode mode);

}  // namespace bsp::reconcile
