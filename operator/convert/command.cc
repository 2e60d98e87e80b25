#include "operator/convert/command.h"

#include <cstdio>

#include "operator/cli/command.h"
#include "operator/cli/exit_code.h"
#include "operator/cli/input.h"
#include "operator/convert/convert.h"

namespace bsp::convert {
namespace {

Result<Converted> convert_file(std::span<const std::string> words) {
  std::string file;
  cli::Command command("bsp-operator convert",
                       "Print a BSPJob for each job of a manifest that runs mpirun: Kubeflow's MPIJob and TrainJob, "
                       "Volcano's Job, also in a template "
                       "or in an Argo Workflow. What has to be built anew and what isn't carried over goes to stderr. "
                       "Exit status 4: the program has to "
                       "be built anew.");
  command.text("-f,--filename", "JOB.yaml", "manifest or template of jobs; - reads standard input", file).required();
  BSP_CHECK_OK(command.parse(words));
  BSP_TRY(const cli::Input input, cli::read_input(file));
  return convert(input.text, input.name);
}

}  // namespace

int run(std::span<const std::string> words) {
  const auto converted = convert_file(words);
  if (!converted) return cli::report_error(converted.error());
  for (const std::string& program : converted->rebuild) std::fprintf(stderr, "rebuild: %s\n", program.c_str());
  for (const std::string& note : converted->notes) std::fprintf(stderr, "%s\n", note.c_str());
  std::fputs(converted->yaml.c_str(), stdout);
  return converted->rebuild.empty() ? cli::kDone : cli::kRebuild;
}

}  // namespace bsp::convert
