// The operator of local mode, a process of its own: the node and the shell over one store.
//
// It may be killed at any moment: containers keep running, and the next operator adopts them.
#pragma once

#include <string>

#include "base/core/error.h"
#include "operator/local/cli/place.h"

namespace bsp::local {

struct ServeOptions {
  Place place;
  std::string record;  // file to which every rescheduling call is appended; "": none
};

// Runs until SIGTERM. kConflict if another operator runs in this namespace.
Result<void> serve(const ServeOptions& options);

}  // namespace bsp::local
