// checkpoint and checkpoints: a job's checkpoint sets.
#include <poll.h>

#include <cstdio>
#include <format>
#include <nlohmann/json.hpp>

#include "crds/names.h"
#include "operator/cli/exit_code.h"
#include "operator/kubectl/commands.h"
#include "operator/kubectl/kubectl.h"
#include "operator/screens/printable.h"
#include "operator/screens/sets.h"

namespace bsp::kubectl {
namespace {

using Words = std::span<const std::string>;

const std::string kJobsOfSets = std::format("bspjobs.{}", names::kGroup);
constexpr int kPollMs = 1000;

Result<crds::BspJob> job_of(const Kubectl& kubectl, const std::string& name) {
  BSP_TRY(const nlohmann::json object, kubectl.get({kJobsOfSets, name}));
  return crds::bsp_job_from_json(object).transform_error(
      [&](const Error& e) { return e.in(std::format("BSPJob {} as the cluster has it", name)); });
}

Result<int> run_checkpoint(Words words) {
  std::string name;
  bool waits = false;
  Access access;
  cli::Command command("kubectl bsp checkpoint", "Make a checkpoint set of a job now.");
  command.argument("JOB", "name of the BSPJob", name).required();
  command.flag("--wait", "wait until it is stored; exit status 0 if it is", waits);
  declare_access(command, access);
  BSP_CHECK_OK(command.parse(words));
  BSP_CHECK_OK(check_name("JOB", name));
  const Kubectl kubectl(access);
  BSP_TRY(const crds::BspJob job, job_of(kubectl, name));
  BSP_TRY(const auto wanted, screens::want_set(job, SystemClock::now()));
  BSP_TRY(const std::string out, kubectl.annotate({kJobsOfSets, name}, names::kAnnotationCheckpoint, wanted.value));
  if (!waits) {
    std::fputs(screens::printable(out.substr(0, out.find('\n'))).append("\n").c_str(), stdout);
    return cli::kDone;
  }
  const Kubectl quiet(access, true);
  for (;;) {
    BSP_TRY(const crds::BspJob now, job_of(quiet, name));
    if (const auto outcome = screens::outcome_of(wanted, now)) {
      BSP_CHECK_OK(*outcome);
      std::puts((*outcome)->c_str());
      return cli::kDone;
    }
    ::poll(nullptr, 0, kPollMs);
  }
}

Result<int> run_checkpoints(Words words) {
  std::string name;
  Access access;
  cli::Command command("kubectl bsp checkpoints", "List the checkpoint sets of a job.");
  command.argument("JOB", "name of the BSPJob", name).required();
  declare_access(command, access);
  BSP_CHECK_OK(command.parse(words));
  BSP_CHECK_OK(check_name("JOB", name));
  BSP_TRY(const crds::BspJob job, job_of(Kubectl(access), name));
  std::fputs(screens::sets_table(job, SystemClock::now()).c_str(), stdout);
  return cli::kDone;
}

int end_of(const Result<int>& status) {
  if (status) return *status;
  return cli::report_error({status.error().code, screens::printable_lines(status.error().message)}, "kubectl-bsp");
}

}  // namespace

int checkpoint(Words words) { return end_of(run_checkpoint(words)); }
int checkpoints(Words words) { return end_of(run_checkpoints(words)); }

}  // namespace bsp::kubectl
