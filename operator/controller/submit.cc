// submit: creates a BSPJob without kubectl, for example in the chart's test.
#include <chrono>
#include <cstdio>
#include <format>

#include "crds/manifest.h"
#include "operator/cli/exit_code.h"
#include "operator/cli/input.h"
#include "operator/controller/options.h"
#include "operator/controller/run.h"
#include "operator/kinds.h"
#include "operator/kube/api_client.h"
#include "operator/kube/fields.h"

namespace bsp::controller {
namespace {

using Steady = std::chrono::steady_clock;

// Prints each new phase; true if the job succeeded.
Result<bool> wait_for_end(kube::ApiClient& client, const kube::Key& at, Steady::time_point deadline) {
  std::string cursor, shown;
  for (;;) {
    BSP_TRY(const auto events, client.wait({kBspJob}, at.name_space, cursor, std::chrono::seconds(1)));
    for (const kube::WatchEvent& event : events) {
      if (kube::metadata_text(event.object, "name") != at.name) continue;
      if (event.type == kube::EventType::kDeleted) return fail(ErrorCode::kNotFound, "the job was deleted");
      BSP_TRY(const crds::BspJob job, crds::bsp_job_from_json(event.object));
      const std::string now = std::format("{}: {}", crds::to_string(job.status.phase), job.status.message);
      if (now != shown && !job.status.reason.empty()) std::printf("%s\n", now.c_str());
      shown = now;
      std::fflush(stdout);
      if (crds::is_finished(job.status.phase)) return job.status.phase == crds::JobPhase::kSucceeded;
    }
    if (Steady::now() > deadline) return fail(ErrorCode::kTimeout, "the job didn't end in time; last phase: " + shown);
  }
}

Result<bool> submit_with(const SubmitOptions& o) {
  BSP_TRY(const cli::Input input, cli::read_input(o.file));
  BSP_TRY(crds::BspJob job, crds::read_bsp_job(input.text, input.name));
  BSP_TRY(const kube::Config config, kube::load_config({.kubeconfig = o.kubeconfig, .context = o.context}));
  BSP_TRY(const auto client, kube::ApiClient::create(config));
  if (!o.name_space.empty()) job.metadata.name_space = o.name_space;
  if (job.metadata.name_space.empty()) job.metadata.name_space = config.name_space;
  kube::Object object;
  to_json(object, job);
  object.erase("status");
  BSP_TRY(const kube::Object created, client->create(object));
  const kube::Key at{kBspJob, job.metadata.name_space, job.metadata.name};
  std::printf("bspjob %s/%s created\n", at.name_space.c_str(), at.name.c_str());
  if (!o.wait) return true;
  auto succeeded = wait_for_end(*client, at, Steady::now() + std::chrono::seconds(o.timeout_seconds));
  if (o.remove)
    if (auto removed = client->remove(at, kube::metadata_text(created, "uid")); !removed && succeeded)
      return std::unexpected(removed.error());
  return succeeded;
}

}  // namespace

Result<int> submit(std::span<const std::string> words) {
  BSP_TRY(const auto options, parse_submit_options(words));
  BSP_TRY(const bool succeeded, submit_with(options));
  return succeeded ? cli::kDone : cli::kFailed;
}

}  // namespace bsp::controller
