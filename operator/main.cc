// bsp-operator: `controller` reconciles the jobs of a Kubernetes cluster, `local` runs one job on this machine.
#include <cstdio>
#include <span>
#include <string>

#include "operator/advise/command.h"
#include "operator/check/command.h"
#include "operator/cli/exit_code.h"
#include "operator/cli/subcommands.h"
#include "operator/controller/run.h"
#include "operator/convert/command.h"
#include "operator/local/cli/commands.h"
#include "operator/local/cli/run.h"
#include "operator/simulate.h"

namespace {

bsp::Result<int> print_version(std::span<const std::string>) {
  std::puts("bsp-operator " BSP_VERSION);
  return bsp::cli::kDone;
}

const bsp::cli::Program kProgram = {
    "bsp-operator",
    "bsp-operator",
    {{"local run", "run a job on this machine", bsp::local::run},
     {"local resume", "go on with a job from its checkpoint sets", bsp::local::resume},
     {"local get", "list objects, or print one", bsp::local::local_get},
     {"local describe", "print a BSPJob or a RankMigration for people", bsp::local::local_describe},
     {"local explain", "say why no rank moves, or why ranks moved", bsp::local::local_explain},
     {"local top", "show a job live, with bars per Set and rank", bsp::local::local_top},
     {"local timeline", "draw a job's run as SVG", bsp::local::local_timeline},
     {"local logs", "print what a rank has written", bsp::local::local_logs},
     {"local migrate", "move a rank", bsp::local::local_migrate},
     {"local checkpoint", "make a checkpoint set of a job now", bsp::local::local_checkpoint},
     {"local checkpoints", "list a job's checkpoint sets", bsp::local::local_checkpoints},
     {"local delete", "delete a job", bsp::local::local_delete},
     {"controller", "reconcile the jobs of a Kubernetes cluster", bsp::controller::run},
     {"submit", "create a job in a Kubernetes cluster", bsp::controller::submit},
     {"before-uninstall", "say which jobs need the operator that is to be uninstalled",
      bsp::controller::before_uninstall},
     {"advise", "decide the calls of a recorded run again, with other parameters", bsp::advise::run},
     {"simulate", "simulate a job on pools that needn't exist", bsp::simulate},
     {"check", "run a program's ranks here, move them, and report what was found", bsp::checking::run},
     {"convert", "make a BSPJob of a job that runs mpirun", bsp::convert::run},
     {"version", "print the version", print_version}}};

}  // namespace

int main(int argc, char** argv) { return bsp::cli::run(kProgram, argc, argv); }
