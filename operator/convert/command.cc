#include "operator/convert/command.h"

#include <algorithm>
#include <cstdio>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "base/json/yaml.h"
#include "crds/manifest.h"
#include "crds/names.h"
#include "operator/check/check.h"
#include "operator/cli/command.h"
#include "operator/cli/exit_code.h"
#include "operator/cli/input.h"
#include "operator/convert/convert.h"
#include "operator/convert/placeholders.h"

namespace bsp::convert {
namespace {

struct Options {
  std::string file;
  bool checks = false;
  checking::CheckOptions check;
};

Result<Options> parse(std::span<const std::string> words) {
  Options o;
  cli::Command command("bsp-operator convert",
                       "Print a BSPJob for each job of a manifest that runs mpirun: Kubeflow's MPIJob and TrainJob, "
                       "Volcano's Job, also in a template "
                       "or in an Argo Workflow. What has to be built anew and what isn't carried over goes to stderr. "
                       "Exit status 4: the program has to "
                       "be built anew.");
  command.text("-f,--filename", "JOB.yaml", "manifest or template of jobs; - reads standard input", o.file).required();
  command.flag("--check",
               "also run two ranks of each job whose image is in Podman's store, move each once, and report what was "
               "found (exit status 1: they didn't move); the options below are for it",
               o.checks);
  checking::declare_options(command, o.check);
  BSP_CHECK_OK(command.parse(words));
  return o;
}

void say(const std::string& name, const std::string& line) {
  std::fprintf(stderr, "check: %s: %s\n", name.c_str(), line.c_str());
}

// A placeholder that is still in the job; "" if none is. Elsewhere than in `values` a shell may read what looks like one: date +%Y%m%d.
std::string unfilled(const std::string& yaml, const std::string& values) {
  const std::size_t begin = yaml.find("{{"), end = yaml.find("}}", std::min(begin, yaml.size()));
  if (end != std::string::npos) return yaml.substr(begin, end + 2 - begin);
  const auto found = placeholders_in(values, /*is_script=*/false);
  return found.empty() ? "" : found.front();
}

// How the command ends if this is its only job.
Result<int> check_one(const nlohmann::json& object, const checking::CheckOptions& options) {
  const std::string name = text_at(part_at(object, "metadata"), "name"), yaml = write_yaml(object);
  const auto job = crds::read_bsp_job(yaml, name);
  const nlohmann::json* app = job ? crds::app_container(job->spec) : nullptr;
  if (const std::string place = unfilled(yaml, app ? text_at(*app, "image") : yaml); !place.empty())
    return say(name, std::format("not run: fill in {} first", place)), cli::kDone;
  if (!job) return say(name, "not run: " + job.error().message), cli::kFailed;
  BSP_CHECK_OK(checking::check_usable());
  if (const auto there = checking::find_image(*job); !there)
    return say(name, "not run: " + there.error().message),
           there.error().code == ErrorCode::kNotFound ? cli::kDone : cli::kFailed;
  const auto checked = checking::check_job(*job, options);
  if (!checked) return say(name, "not run: " + checked.error().message), cli::kFailed;
  if (checked->signal != 0) return cli::kSignalled + checked->signal;
  for (const std::string& line : checking::lines_of(checked->report)) say(name, line);
  return checked->report.failure.empty() ? cli::kDone : cli::kFailed;
}

Result<int> check_all(const std::string& yaml, const Options& options) {
  const auto documents = read_yaml(yaml);
  if (!documents) return say(options.file, "not run: fill in the template's placeholders first"), cli::kDone;
  int code = cli::kDone;
  for (const nlohmann::json& object : *documents) {
    if (text_at(object, "kind") != names::kBspJobKind) continue;
    BSP_TRY(const int ended, check_one(object, options.check));
    if (ended > cli::kSignalled) return ended;
    code = std::max(code, ended);
  }
  return code;
}

}  // namespace

Result<int> run(std::span<const std::string> words) {
  BSP_TRY(const Options options, parse(words));
  BSP_TRY(const cli::Input input, cli::read_input(options.file));
  BSP_TRY(const Converted converted, convert(input.text, input.name));
  for (const std::string& program : converted.rebuild) std::fprintf(stderr, "rebuild: %s\n", program.c_str());
  for (const std::string& note : converted.notes) std::fprintf(stderr, "%s\n", note.c_str());
  std::fputs(converted.yaml.c_str(), stdout);
  std::fflush(stdout);  // before the check, which takes a while and forks
  int code = cli::kDone;
  if (options.checks) {
    const auto checked = check_all(converted.yaml, options);
    code = checked ? *checked : cli::report_error(checked.error().in("--check"));
  }
  return code < cli::kSignalled && !converted.rebuild.empty() ? cli::kRebuild : code;
}

}  // namespace bsp::convert
