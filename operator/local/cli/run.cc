#include "operator/local/cli/run.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <format>
#include <vector>

#include "crds/manifest.h"
#include "operator/cli/exit_code.h"
#include "operator/cli/input.h"
#include "operator/local/cli/one_job.h"
#include "operator/local/cli/place.h"
#include "operator/local/cli/summary.h"
#include "operator/local/cli/view.h"
#include "operator/local/files.h"
#include "operator/local/pod_logs.h"
#include "operator/local/pools.h"
#include "operator/reconcile/shell/record.h"
#include "operator/screens/timeline.h"

namespace bsp::local {
namespace {

struct RunOptions {
  std::string file;
  std::string pools;
  std::string mode;
  std::string summary;
  std::string timeline;
  std::string checkpoints;
  bool plain = false;
  ServeOptions serve;
};

Result<RunOptions> parse(std::span<const std::string> words) {
  RunOptions o;
  cli::Command command("bsp-operator local run",
                       "Run a job on this machine, and remove everything it started when the job ends.");
  command.text("-f,--filename", "JOB.yaml", "a BSPJob, as kubectl apply takes it; - reads standard input", o.file)
      .required();
  command
      .text(
          "--pools", "NAME=NODESx[SLOTSx]CPU,…",
          "the Sets: slow=3x0.25,fast=2x4x0.6 has three nodes with a quarter of a core, and two with four slots of 0.6 "
          "cores",
          o.pools)
      .required();
  command.text("--mode", "MODE", "Migrate, Advise or Off, instead of the manifest's spec.rescheduling.mode", o.mode);
  command.option("--record", "FILE", "append every rescheduling call, for: bsp-operator advise -f FILE",
                 [&o](const std::string& value) -> std::string {
                   if (value.empty() || value == "-")
                     return "must be a file, because local run prints to standard output";
                   o.serve.record = std::filesystem::absolute(value).string();
                   return "";
                 });
  command.text("--summary", "FILE", "write the outcome as JSON", o.summary);
  command.text("--timeline", "FILE", "draw the run as SVG", o.timeline);
  command.option("--checkpoints", "DIR",
                 "store checkpoint sets in this directory, from which the job goes on after a loss "
                 "(spec.checkpoint.interval, keep)",
                 [&o](const std::string& value) -> std::string {
                   if (value.empty()) return "must name a directory";
                   o.checkpoints = std::filesystem::absolute(value).string();
                   return "";
                 });
  command.flag("--plain", "print plain lines even on a terminal", o.plain);
  declare_place(command, o.serve.place);
  BSP_CHECK_OK(command.parse(words));
  return o;
}

class Run {
 public:
  explicit Run(RunOptions options)
      : options_(std::move(options)),
        view_(stdout, !options_.plain && ::isatty(STDOUT_FILENO) == 1),
        one_(options_.serve, [this](const std::string& line) { view_.say(line); }) {}

  Result<int> operator()() {
    BSP_CHECK_OK(prepare());
    auto status = work();
    view_.say("Removing the job and the cluster");
    if (auto removed = one_.remove(); !removed && status) return std::unexpected(removed.error().in("cleaning up"));
    return status;
  }

 private:
  // Checks everything that can be checked before anything is started.
  Result<void> prepare() {
    BSP_TRY(const auto pools, parse_pools(options_.pools));
    BSP_TRY(const cli::Input input, cli::read_input(options_.file));
    BSP_TRY(crds::BspJob job, crds::read_bsp_job(input.text, input.name));
    if (!options_.mode.empty()) {
      auto mode = crds::enum_from<crds::ReschedulingMode>(options_.mode);
      if (!mode) return std::unexpected(mode.error().in("--mode"));
      job.spec.rescheduling.mode = *mode;
    }
    if (!options_.serve.record.empty())
      if (auto good = reconcile::check_appendable(options_.serve.record); !good)
        return std::unexpected(good.error().in("--record"));
    if (!options_.timeline.empty())
      if (auto good = reconcile::check_appendable(options_.timeline); !good)
        return std::unexpected(good.error().in("--timeline"));
    if (!options_.checkpoints.empty()) {
      BSP_CHECK_OK(prepare_checkpoints());
      job.spec.checkpoint.storage.emplace();
      job.spec.checkpoint.storage->host_path = crds::HostPathSource{options_.checkpoints};
    }
    return one_.prepare(std::move(job), pools);
  }

  // The sidecars, of another user, write into it; what it held before stays as it was.
  Result<void> prepare_checkpoints() const {
    std::error_code failed;
    if (!std::filesystem::create_directories(options_.checkpoints, failed)) {
      if (failed) return fail_errno("--checkpoints " + options_.checkpoints, failed.value());
      return {};
    }
    std::filesystem::permissions(options_.checkpoints, std::filesystem::perms::all | std::filesystem::perms::sticky_bit,
                                 failed);
    if (failed) return fail_errno("--checkpoints " + options_.checkpoints, failed.value());
    return {};
  }

  Result<int> work() {
    BSP_CHECK_OK(one_.start());
    for (;;) {
      BSP_TRY(const OneJob::Turn turn, one_.next());
      note();
      view_.update(one_.job(), one_.migrations());
      switch (turn) {
        case OneJob::Turn::kGoesOn:
          break;
        case OneJob::Turn::kFinished:
          return finish();
        case OneJob::Turn::kGone:
          view_.say("The job was deleted");
          return cli::kFailed;
        case OneJob::Turn::kCannotServe:
          return cli::kFailed;
        case OneJob::Turn::kInterrupted:
          view_.say("Interrupted: stopping the job");
          return cli::kSignalled + one_.signal();
      }
    }
  }

  // Keeps what the job's status shows for a while only.
  void note() {
    const crds::BspJobStatus& status = one_.job().status;
    if (running_ == Time{} && status.phase == crds::JobPhase::kRunning)
      if (const auto* c = crds::find_condition(status.conditions, "Running")) running_ = c->last_transition_time;
    if (const auto& d = status.last_decision; d && (calls_.empty() || calls_.back().time != d->time))
      calls_.push_back(screens::call_of(*d));
  }

  Result<int> finish() {
    // The operator writes the outcome of migrations on other threads, a moment after the job's.
    BSP_CHECK_OK(one_.settle());
    BSP_CHECK_OK(one_.await_output(0));
    const crds::BspJob& job = one_.job();
    const auto migrations = one_.migrations();
    view_.update(job, migrations);
    const std::string output = RankLog().next(log_files(one_.store().directory() + "/logs", job, 0), true);
    const nlohmann::json summary = summary_of(job, migrations, running_, output);
    if (!output.empty()) view_.say(std::format("Rank 0 wrote:\n{}", output));
    if (!summary["makespan_s"].is_null())
      view_.say(std::format("{} supersteps in {:.2f} s, {} of {} moves succeeded", job.status.superstep.value,
                            summary["makespan_s"].get<double>(), job.status.migrations.succeeded, migrations.size()));
    BSP_CHECK_OK(draw_timeline());
    if (!options_.summary.empty())
      BSP_CHECK_OK(replace_file(options_.summary, options_.summary + ".new", summary.dump(2) + "\n"));
    return job.status.phase == crds::JobPhase::kSucceeded ? cli::kDone : cli::kFailed;
  }

  // A record has each call; without one, what the status showed of them.
  Result<void> draw_timeline() {
    if (options_.timeline.empty()) return {};
    std::vector<screens::CallMade> calls = calls_;
    if (auto recorded = screens::calls_of_file(options_.serve.record, one_.job()); recorded && !recorded->empty())
      calls = std::move(*recorded);
    const std::string svg = screens::timeline_svg({one_.job(), one_.migrations()}, calls, running_, SystemClock::now());
    return replace_file(options_.timeline, options_.timeline + ".new", svg);
  }

  RunOptions options_;
  View view_;
  OneJob one_;
  std::vector<screens::CallMade> calls_;
  Time running_{};
};

}  // namespace

int run(std::span<const std::string> args) {
  auto options = parse(args);
  if (!options) return cli::report_error(options.error());
  auto status = Run(std::move(*options))();
  return status ? *status : cli::report_error(status.error());
}

}  // namespace bsp::local
