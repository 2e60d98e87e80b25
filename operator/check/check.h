// Two ranks of a program run on this machine, each moved once.
#pragma once

#include "base/core/error.h"
#include "crds/bspjob.h"
#include "operator/check/report.h"
#include "operator/cli/command.h"
#include "operator/local/cli/serve.h"

namespace bsp::checking {

struct CheckOptions {
  CheckOptions();  // in a namespace of its own

  double seconds = 10;        // of watching, before its ranks move
  double start_seconds = 60;  // that it may take to come to MPI_Init
  double move_seconds = 60;   // that a move may be held back
  double cpu = 1;             // cores for each rank
  local::ServeOptions serve;
};

struct Checked {
  Report report;
  int signal = 0;  // that interrupted it; the report isn't whole then
};

// --seconds, --start-seconds, --move-seconds, --cpu, --namespace and --store.
void declare_options(cli::Command& command, CheckOptions& options);

// Whether this machine can run ranks at all. kRefused: not as this user; kNotFound: Podman isn't installed. With the remedy.
Result<void> check_usable();

// kNotFound, with the remedy, if the image of the job's ranks isn't in Podman's store.
Result<void> find_image(const crds::BspJob& job);

// The job's image must be in Podman's store. Its ranks, Sets and mode are replaced. Says on stderr what it does.
Result<Checked> check_job(crds::BspJob job, const CheckOptions& options);

}  // namespace bsp::checking
