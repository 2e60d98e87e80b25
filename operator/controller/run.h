// The commands for a Kubernetes cluster. Each takes the words after its name and returns the exit status: 0 done, 1 it
// failed (the reason is on stderr), 2 the call was wrong.
#pragma once

#include <span>
#include <string>

#include "base/core/error.h"

namespace bsp::controller {

// controller: looks after the BSPJobs of a cluster until SIGTERM.
int run(std::span<const std::string> words);
// submit -f JOB.yaml [--wait]: creates one, and may wait for its end.
int submit(std::span<const std::string> words);

// Says on stderr why a command failed; the exit status that goes with it.
int said(const Error& error);

}  // namespace bsp::controller
