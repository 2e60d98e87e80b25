// Objects from the files users write: what `kubectl apply -f` would take.
//
// Errors are ready for the user: "job.yaml:12: spec.rescheduling.heuristc: unknown field; did you mean
// spec.rescheduling.heuristic?". A file holds one object.
#pragma once

#include <string_view>

#include "base/core/error.h"
#include "crds/bspjob.h"

namespace bsp::crds {

// `file_name` only for the messages. Defaults are filled in; the rules of validate() hold.
Result<BspJob> read_bsp_job(std::string_view yaml, std::string_view file_name);

}  // namespace bsp::crds
