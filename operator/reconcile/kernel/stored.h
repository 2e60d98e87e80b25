// Whether a status that was read back can be one that an operator has stored. Whoever may write a status may have written
// this one, so everything that the kernels use as an index is checked. Pure.
#pragma once

#include "base/core/error.h"
#include "crds/bspjob.h"

namespace bsp::reconcile {

// kInvalid with the field's path and the remedy.
Result<void> check_stored(const crds::BspJob& job);

}  // namespace bsp::reconcile
