// `bsp-operator local run`: a small cluster on this machine for one job, removed when the job ends.
//
// The process that the user starts displays the job, restarts the operator's process (serve.h) if it dies, and cleans up
// at the end. Exit code: operator/cli/exit_code.h; kFailed if the job failed.
#pragma once

#include <span>
#include <string>

#include "base/core/error.h"

namespace bsp::local {

int run(std::span<const std::string> args);

// Removes a store and everything that belongs to it: containers, network namespaces, mounts, files. Succeeds if there is
// nothing. No operator may be running on it.
Result<void> remove_cluster(const std::string& root, const std::string& name_space);

}  // namespace bsp::local
