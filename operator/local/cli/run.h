// `bsp-operator local run`: a small cluster on this machine for one job, removed when the job ends (one_job.h). It displays the
// job. Exit code: operator/cli/exit_code.h; kFailed if the job failed.
#pragma once

#include <span>
#include <string>

#include "base/core/error.h"

namespace bsp::local {

Result<int> run(std::span<const std::string> args);
// `bsp-operator local resume`: the same, from the checkpoint sets of a job that `local run` has run (kept_job.h).
Result<int> resume(std::span<const std::string> args);

}  // namespace bsp::local
