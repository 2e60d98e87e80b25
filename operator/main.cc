// bsp-operator: the program. `controller` looks after the jobs of a Kubernetes cluster, `local` is a little cluster on
// this machine.
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "operator/advise/command.h"
#include "operator/controller/run.h"
#include "operator/local/cli/commands.h"
#include "operator/local/cli/run.h"
#include "operator/simulate.h"

namespace {

using Command = int (*)(std::span<const std::string>);

constexpr const char* kUsage =
    "usage: bsp-operator local run -f JOB.yaml --pools slow=3x0.25,fast=2x0.6   run a job on this machine\n"
    "       bsp-operator local get [bspjobs|rankmigrations|pods|nodes|events] [NAME] [-o wide|json|yaml|name] [-w]\n"
    "       bsp-operator local describe bspjob|rankmigration NAME\n"
    "       bsp-operator local logs RANK [-f]\n"
    "       bsp-operator local migrate RANK --to SET [--wait]\n"
    "       bsp-operator local delete JOB\n"
    "       bsp-operator controller [OPTION…]                 look after the jobs of a Kubernetes cluster\n"
    "       bsp-operator submit -f JOB.yaml [--wait]          create a job in a Kubernetes cluster\n"
    "       bsp-operator advise -f RECORD.jsonl [OPTION…]     what another heuristic would have done in a recorded "
    "run\n"
    "       bsp-operator simulate -f JOB.yaml --pools … --application …   what the scheduler would do with a job\n"
    "       bsp-operator version\n";

const std::map<std::string, Command> kLocal = {
    {"run", bsp::local::run},         {"get", bsp::local::local_get},         {"describe", bsp::local::local_describe},
    {"logs", bsp::local::local_logs}, {"migrate", bsp::local::local_migrate}, {"delete", bsp::local::local_delete}};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::span<const std::string> args(words);
  if (args.size() >= 2 && args[0] == "local")
    if (const auto command = kLocal.find(args[1]); command != kLocal.end()) return command->second(args.subspan(2));
  if (!args.empty() && args[0] == "controller") return bsp::controller::run(args.subspan(1));
  if (!args.empty() && args[0] == "submit") return bsp::controller::submit(args.subspan(1));
  if (!args.empty() && args[0] == "advise") return bsp::advise::run(args.subspan(1));
  if (!args.empty() && args[0] == "simulate") return bsp::simulate(args.subspan(1));
  if (args.size() == 1 && args[0] == "version") {
    std::puts("bsp-operator " BSP_VERSION);
    return 0;
  }
  const bool help = args.empty() || args[0] == "help" || args.back() == "--help" || args.back() == "-h";
  std::fputs(kUsage, help ? stdout : stderr);
  return help ? 0 : 2;
}
