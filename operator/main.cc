// bsp-operator: the program. Today it has one mode, `local`: a little cluster on this machine.
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "operator/local/run.h"

namespace {

constexpr const char* kUsage =
    "usage: bsp-operator local run -f JOB.yaml --pools slow=3x0.25,fast=2x0.6   run a job on this machine\n"
    "       bsp-operator version\n";

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::span<const std::string> args(words);
  if (args.size() >= 2 && args[0] == "local" && args[1] == "run") return bsp::local::run(args.subspan(2));
  if (args.size() == 1 && args[0] == "version") {
    std::puts("bsp-operator " BSP_VERSION);
    return 0;
  }
  const bool help = args.empty() || args[0] == "help" || args[0] == "--help";
  std::fputs(kUsage, help ? stdout : stderr);
  return help ? 0 : 2;
}
