// bsp-simulate: what would the scheduler do with my job on my pools? bsp-operator executes it for `simulate`, so that
// the operator itself needn't link SimGrid.
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <string>
#include <vector>

#include "crds/manifest.h"
#include "operator/cli/exit_code.h"
#include "operator/cli/input.h"
#include "operator/decide/auto/auto.h"
#include "operator/observe/snapshot.h"
#include "operator/record/line.h"
#include "sim/applications/applications.h"
#include "sim/cli/options.h"
#include "sim/cli/report.h"
#include "sim/cli/timeline.h"
#include "sim/scenario.h"
#include "sim/trace/trace.h"

namespace bsp::sim {
namespace {

Result<Platform> platform_of(const Options& options, const crds::BspJob& job) {
  BSP_TRY(const Platform all,
          options.pools.empty() ? read_platform_file(options.platform_file) : platform_of_pools(options.pools));
  BSP_TRY(Platform platform, with_sets(all, job.spec.sets.names));
  for (const auto& [name, price] : options.prices) {
    const auto set = std::ranges::find(platform.sets, name, &Set::name);
    if (set == platform.sets.end())
      return fail(ErrorCode::kInvalid, std::format("--prices: the job has no Set {}", name));
    for (Node& node : set->nodes) node.price = price / std::max(node.slots, 1u);
  }
  if (options.mig_seconds) platform.mig_seconds = *options.mig_seconds;
  if (options.call_seconds) platform.call = {.points = {{1, *options.call_seconds}}};
  return platform;
}

std::vector<Application> all_applications() {
  std::vector<Application> table(applications().begin(), applications().end());
  table.push_back(trace());
  return table;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return fail_errno("writing " + path);
  return {};
}

// Checks output files before the simulation.
Result<void> check_writable(const std::string& option, const std::string& path) {
  if (path.empty()) return {};
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path == "-") return fail(ErrorCode::kInvalid, option + ": - is no file here; for one of that name write ./-");
  if (fs::is_directory(path, ignored)) return fail(ErrorCode::kInvalid, option + ": " + path + " is a directory");
  const fs::path directory = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  const bool exists = fs::exists(path, ignored);
  if (::access(exists ? path.c_str() : directory.c_str(), W_OK) != 0) return fail_errno(option + ": writing " + path);
  return {};
}

Result<void> run(const Options& options) {
  BSP_CHECK_OK(check_writable("--record", options.record));
  BSP_CHECK_OK(check_writable("--timeline", options.timeline));
  if (!options.record.empty() && options.record == options.timeline)
    return fail(ErrorCode::kInvalid, "--record and --timeline: " + options.record + " can't be both");
  BSP_TRY(const cli::Input input, cli::read_input(options.job));
  BSP_TRY(const crds::BspJob job, crds::read_bsp_job(input.text, input.name));
  BSP_TRY(const Platform platform, platform_of(options, job));
  BSP_TRY(const auto workload, make_workload(all_applications(), options.application, job.spec.ranks));
  const decide::Mapping mapping = job.spec.initial_mapping;
  Scenario scenario{.platform = platform,
                    .workload = *workload,
                    .params = observe::make_params(job.spec.rescheduling, job.spec.objective)};
  scenario.deadline = static_cast<double>(crds::duration_seconds(job.spec.objective.deadline).value_or(0));
  if (options.heuristic) decide::take_heuristic(scenario.params, *options.heuristic);
  BSP_TRY(scenario.mapping, initial_mapping(platform, mapping, workload->ranks()));
  std::string recorded;
  if (!options.record.empty())
    scenario.on_call = [&](const CallInProgress& call) {
      recorded += record::to_line({.name_space = job.metadata.name_space,
                                   .job = job.metadata.name,
                                   .params = call.params,
                                   .snapshot = call.snapshot,
                                   .state = call.state,
                                   .supersteps = call.supersteps,
                                   .plan = call.plan}) +
                  "\n";
    };
  BSP_TRY(const Scenarios scenarios, simulate_all(std::move(scenario)));
  if (!options.record.empty()) BSP_CHECK_OK(write_file(options.record, recorded));
  if (!options.timeline.empty())
    BSP_CHECK_OK(write_file(options.timeline, timeline_svg(platform, *workload, scenarios)));
  if (options.json)
    std::puts(report_json(platform, *workload, scenarios)
                  .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
  else
    std::fputs(report_text(platform, *workload, scenarios, options.rows).c_str(), stdout);
  return {};
}

}  // namespace
}  // namespace bsp::sim

int main(int argc, char** argv) {
  bsp::cli::keep_standard_streams();
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto options = bsp::sim::parse_options(words, describe(bsp::sim::all_applications()));
  const bsp::Result<void> done = options ? bsp::sim::run(*options) : std::unexpected(options.error());
  return bsp::cli::ended(done ? bsp::cli::kDone : bsp::cli::report_error(done.error()));
}
