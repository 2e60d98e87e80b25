// bsp-operator: `controller` reconciles the jobs of a Kubernetes cluster, `local` runs one job on this machine.
#include <cstdio>
#include <format>
#include <span>
#include <string>
#include <vector>

#include "crds/nearest.h"
#include "operator/advise/command.h"
#include "operator/cli/exit_code.h"
#include "operator/controller/run.h"
#include "operator/convert/command.h"
#include "operator/local/cli/commands.h"
#include "operator/local/cli/run.h"
#include "operator/simulate.h"

namespace {

using Words = std::span<const std::string>;

int print_version(Words) {
  std::puts("bsp-operator " BSP_VERSION);
  return bsp::cli::kDone;
}

struct Command {
  std::string name;
  const char* purpose;
  int (*run)(Words);
};

const std::vector<Command> kCommands = {
    {"local run", "run a job on this machine", bsp::local::run},
    {"local get", "list objects, or print one", bsp::local::local_get},
    {"local describe", "print a BSPJob or a RankMigration for people", bsp::local::local_describe},
    {"local logs", "print what a rank has written", bsp::local::local_logs},
    {"local migrate", "move a rank", bsp::local::local_migrate},
    {"local delete", "delete a job", bsp::local::local_delete},
    {"controller", "reconcile the jobs of a Kubernetes cluster", bsp::controller::run},
    {"submit", "create a job in a Kubernetes cluster", bsp::controller::submit},
    {"advise", "decide the calls of a recorded run again, with other parameters", bsp::advise::run},
    {"simulate", "simulate a job on pools that needn't exist", bsp::simulate},
    {"convert", "make a BSPJob of a Kubeflow MPIJob", bsp::convert::run},
    {"version", "print the version", print_version},
};

std::string usage() {
  std::string text =
      "usage: bsp-operator COMMAND [ARGUMENT…]\n\nCommands (COMMAND --help lists a command's options):\n";
  for (const Command& command : kCommands) text += std::format("  {:<16} {}\n", command.name, command.purpose);
  return text + "\nExit status: 0 done; 1 failed; 2 wrong command line or input; 128 + signal if interrupted\n";
}

// How many of the first words name the command; 0 if they name another.
std::size_t words_of(const Command& command, Words words) {
  if (words.empty()) return 0;
  if (words[0] == command.name) return 1;
  return words.size() >= 2 && words[0] + " " + words[1] == command.name ? 2 : 0;
}

bsp::Error unknown(Words words) {
  std::vector<std::string_view> known;
  for (const Command& command : kCommands) known.push_back(command.name);
  std::string given = words[0];
  if (given == "local" && words.size() > 1) given += " " + words[1];
  return {.code = bsp::ErrorCode::kInvalid,
          .message = std::format("unknown command \"{}\"{}\n{}", given, bsp::crds::suggestion(given, known), usage())};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> all(argv + 1, argv + argc);
  const Words words(all);
  for (const Command& command : kCommands)
    if (const std::size_t used = words_of(command, words); used > 0) return command.run(words.subspan(used));
  if (!words.empty() && words[0] != "help" && words.back() != "--help" && words.back() != "-h")
    return bsp::cli::report_error(unknown(words));
  std::fputs(usage().c_str(), stdout);
  return bsp::cli::kDone;
}
