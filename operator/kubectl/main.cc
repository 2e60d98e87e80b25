// kubectl-bsp: a plugin that kubectl runs for `kubectl bsp`.
#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "operator/cli/exit_code.h"
#include "operator/cli/subcommands.h"
#include "operator/kubectl/commands.h"
#include "operator/screens/printable.h"

namespace {

bsp::Result<int> print_version(std::span<const std::string>) {
  std::puts("kubectl-bsp " BSP_VERSION);
  return bsp::cli::kDone;
}

const bsp::cli::Program kProgram = {"kubectl bsp",
                                    "kubectl-bsp",
                                    {{"explain", "say why no rank moves, or why ranks moved", bsp::kubectl::explain},
                                     {"top", "show a job live, with bars per Set and rank", bsp::kubectl::top},
                                     {"timeline", "draw a job's run as SVG", bsp::kubectl::timeline},
                                     {"migrate", "move a rank to a Set or a node", bsp::kubectl::migrate},
                                     {"checkpoint", "make a checkpoint set of a job now", bsp::kubectl::checkpoint},
                                     {"checkpoints", "list a job's checkpoint sets", bsp::kubectl::checkpoints},
                                     {"drain-plan", "forecast a drain of a node", bsp::kubectl::drain_plan},
                                     {"version", "print the version", print_version}},
                                    bsp::screens::printable_lines};

// kubectl's users write `kubectl bsp -n science top JOB` too: options in front of the command go behind it.
std::vector<char*> with_command_first(int argc, char** argv) {
  std::vector<char*> words(argv, argv + argc);
  auto at = words.begin() + 1;
  while (at != words.end()) {
    const std::string word = *at;
    const bool takes_next = word == "-n" || word == "--namespace" || word == "--context" || word == "--kubeconfig";
    const bool has_value = word.starts_with("-n") || word.starts_with("--namespace=") ||
                           word.starts_with("--context=") || word.starts_with("--kubeconfig=");
    if (!takes_next && !has_value) break;
    at += std::min<std::ptrdiff_t>(takes_next ? 2 : 1, words.end() - at);
  }
  if (at != words.end()) std::rotate(words.begin() + 1, at, words.end());
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> words = with_command_first(argc, argv);
  return bsp::cli::run(kProgram, argc, words.data());
}
