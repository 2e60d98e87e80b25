// Whether a status that was read back is one that an operator has stored: what the kernels index with must be there, for
// anybody who may write a status may have written this one. Pure.
#pragma once

#include "base/core/error.h"
#include "crds/bspjob.h"

namespace bsp::reconcile {

// kInvalid with the field's path and the remedy.
Result<void> check_stored(const crds::BspJob& job);

}  // namespace bsp::reconcile
