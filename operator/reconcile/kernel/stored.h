// Whether a status that was read back can be one that an operator has stored. Whoever may write a status may have written
// this one, so everything that the kernels use as an index is checked. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/core/error.h"
#include "crds/bspjob.h"

namespace bsp::reconcile {

// kInvalid with the field's path and the remedy.
Result<void> check_stored(const crds::BspJob& job);
// The reason in the status of a job that was never begun.
inline constexpr const char* kInvalidJob = "Invalid";
// Of an object that can't be read: no operator has ever done anything for it, so its author can correct it and create it again.
bool never_begun(const nlohmann::json& object);

}  // namespace bsp::reconcile
