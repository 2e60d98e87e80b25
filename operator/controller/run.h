// The commands for a Kubernetes cluster. Each takes the words after its name and returns an exit code
// (operator/cli/exit_code.h).
#pragma once

#include <span>
#include <string>

#include "base/core/error.h"

namespace bsp::controller {

// controller: reconciles the BSPJobs of a cluster until SIGTERM.
Result<int> run(std::span<const std::string> words);
// submit -f JOB.yaml [--wait]: creates one, and waits for its end if asked to.
Result<int> submit(std::span<const std::string> words);
// before-uninstall [--delete]: fails while jobs need the operator; or deletes them.
Result<int> before_uninstall(std::span<const std::string> words);

}  // namespace bsp::controller
