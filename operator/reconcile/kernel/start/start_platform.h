// What the initial mapping is made from: the nodes, and how fast they are as far as anything says so before the start.
//
//   speed of a Set    what ranks of an earlier attempt measured there (status.calibration), else its nodes' benchmark, of this
//                     job or of an earlier one in its namespace, and what the nodes say they give to a rank (migbsp.io/cpu)
//   order of the Sets spec.sets.names; without it the fastest first, if they differ by more than kApart, else by name
//
// So Contiguous fills the fastest Set first, unless the manifest names an order, and Ascending, Descending and CPU go by the best
// that is known. A job that Kueue has admitted gets the quota of Sets that its Workload named; so no benchmark counts for it that
// may have come since.
#pragma once

#include "operator/decide/model/model.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// `nodes`: o.nodes, or as they are for whom the start is planned.
decide::Platform platform_at_start(const Observed& o, const std::vector<observe::NodeFacts>& nodes);

// Whether the order of the Sets is left to the operator.
bool is_ordered_by_speed(const crds::BspJobSpec& spec);

// The Sets in the order in which they were filled, if that is not by name; else "".
std::string order_by_speed(const crds::BspJobSpec& spec, const crds::RankPlaces& ranks);

}  // namespace bsp::reconcile
