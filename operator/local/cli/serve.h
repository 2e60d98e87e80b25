// The operator of local mode, in a process of its own: the node and the shell over one store.
//
// It may be killed at any moment: containers go on, and the next one takes them over.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp::local {

struct ServeOptions {
  std::string root = "/run/bsp-operator";
  std::string name_space = "default";
  std::string record;  // file to which every rescheduling call is added; "": none
};

// Works until SIGTERM. kConflict: another one serves this namespace.
Result<void> serve(const ServeOptions& options);

}  // namespace bsp::local
