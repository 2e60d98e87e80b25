// What nodes cost, for a job that goes by it (spec.objective). Pure.
#pragma once

#include <optional>
#include <string>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// Nodes of its Sets have no price, or one that can't be read. True: the condition has just become True.
bool warn_of_prices(const Observed& o, crds::BspJobStatus& status);

// What a wave's moves add to what the ranks' slots cost an hour, at the prices of now. None: the job doesn't go by price, or people asked
// for them.
std::optional<double> added_an_hour(const migrate::Wave& wave, const Observed& o);
// Why a wave that hasn't paused anybody yet is not to be carried out any more: prices or spec.objective are not those by which it was
// decided. "": it is.
std::string why_dearer(const migrate::Wave& wave, const Observed& o);

}  // namespace bsp::reconcile
