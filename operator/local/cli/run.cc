#include "operator/local/cli/run.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <format>
#include <map>
#include <vector>

#include "base/core/base64.h"
#include "base/core/counted.h"
#include "base/json/fields.h"
#include "crds/manifest.h"
#include "operator/cli/exit_code.h"
#include "operator/cli/input.h"
#include "operator/cli/prices.h"
#include "operator/local/cli/bucket.h"
#include "operator/local/cli/kept_job.h"
#include "operator/local/cli/one_job.h"
#include "operator/local/cli/place.h"
#include "operator/local/cli/summary.h"
#include "operator/local/cli/view.h"
#include "operator/local/files.h"
#include "operator/local/pod_logs.h"
#include "operator/local/pools.h"
#include "operator/reconcile/shell/record.h"
#include "operator/reconcile/shell/shell_options.h"
#include "operator/reconcile/shell/trouble.h"
#include "operator/screens/timeline.h"

namespace bsp::local {
namespace {

struct RunOptions {
  std::string file;
  std::string pools;
  std::map<std::string, double> prices;  // of a node of each pool, an hour
  std::string mode;
  std::string summary;
  std::string timeline;
  std::string checkpoints;  // an absolute directory, or s3://BUCKET[/PREFIX]
  std::string kept;         // directory of what `local resume` reads: that one, or one of the user's
  bool plain = false;
  bool resumes = false;
  ServeOptions serve;
};

Result<void> take_place(const std::string& place, RunOptions& o) {
  BSP_TRY(const bool bucket, names_bucket(place));
  o.checkpoints = bucket ? place : std::filesystem::absolute(place).string();
  o.kept = o.checkpoints;
  if (bucket) {
    BSP_TRY(o.kept, own_directory_of(place));
  }
  return {};
}

Result<RunOptions> parse(std::span<const std::string> words, bool resumes) {
  RunOptions o;
  cli::Command command(
      resumes ? "bsp-operator local resume" : "bsp-operator local run",
      resumes ? "Go on with the job whose checkpoint sets lie in a directory or a bucket (local run --checkpoints), as "
                "far as its newest set; the job's files and images must be as they were."
              : "Run a job on this machine, and remove everything it started when the job ends.");
  if (resumes)
    command.argument("PLACE", "where the sets lie: a directory or s3://BUCKET[/PREFIX]", o.checkpoints).required();
  else
    command.text("-f,--filename", "JOB.yaml", "a BSPJob, as kubectl apply takes it; - reads standard input", o.file)
        .required();
  command
      .text(
          "--pools", "NAME=NODESx[SLOTSx]CPU,…",
          "the Sets: slow=3x0.25,fast=2x4x0.6 has three nodes with a quarter of a core, and two with four slots of 0.6 "
          "cores",
          o.pools)
      .required();
  command.option("--prices", "NAME=PRICE,…",
                 "what a node of a pool costs an hour in any one currency, for jobs with spec.objective",
                 cli::prices(o.prices, "slow=1,fast=3"));
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
  if (!resumes)
    command.option(
        "--checkpoints", "PLACE",
        "store checkpoint sets in this directory or in s3://BUCKET[/PREFIX], from which the job goes on after a "
        "loss (spec.checkpoint.interval, keep); AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
        "say where a bucket is and with which key",
        [&o](const std::string& value) -> std::string {
          if (value.empty()) return "must name a directory or a bucket";
          const auto good = take_place(value, o);
          return good ? "" : good.error().message;
        });
  command.flag("--plain", "print plain lines even on a terminal", o.plain);
  declare_place(command, o.serve.place);
  BSP_CHECK_OK(command.parse(words));
  if (resumes) BSP_CHECK_OK(take_place(std::string(o.checkpoints), o));
  o.resumes = resumes;
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
    if (auto settled = settle_sets(status.value_or(cli::kFailed)); !settled) view_.say(settled.error().message);
    view_.say("Removing the job and the cluster");
    const auto removed = one_.remove();
    if (!removed && status) return std::unexpected(removed.error().in("cleaning up"));
    // Not before: a set might still be on its way.
    if (removed && needs_no_sets(status.value_or(cli::kFailed)))
      if (auto forgot = forget_sets(); !forgot)
        view_.say(std::format("Checkpoint sets are left in {}: {}", options_.checkpoints, forgot.error().message));
    return status;
  }

 private:
  // Checks everything that can be checked before anything is started.
  Result<void> prepare() {
    BSP_TRY(auto pools, parse_pools(options_.pools));
    BSP_CHECK_OK(set_prices(options_.prices, pools));
    std::string seed;
    crds::BspJob job;
    if (options_.resumes) {
      BSP_TRY(const KeptJob kept, newest_kept_job(options_.kept, options_.checkpoints));
      BSP_TRY(job, resumed(kept, options_.serve.place.name_space));
      seed = kept.seed;
      view_.say(std::format("Job {} goes on from checkpoint set {}, which was made after superstep {}",
                            job.metadata.name, job.status.checkpoint->sets.back().id,
                            job.status.checkpoint->superstep.value));
    } else {
      BSP_TRY(const cli::Input input, cli::read_input(options_.file));
      BSP_TRY(job, crds::read_bsp_job(input.text, input.name));
    }
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
      BSP_TRY(job.spec.checkpoint.storage, prepare_checkpoints());
      if (auto good = crds::validate(job.spec); !good) return std::unexpected(good.error().in(options_.checkpoints));
    }
    if (const auto& from = job.spec.restore_from; from && !from->exported.empty())
      return fail(
          ErrorCode::kInvalid,
          "spec.restoreFrom.exported: needs a cluster, one of whose Secrets holds the key; with a local job's sets "
          "bsp-operator local resume DIR goes on");
    if (const auto& storage = job.spec.checkpoint.storage; storage && storage->s3) {
      BSP_TRY(secrets_, secrets_of(*storage->s3));
    }
    return one_.prepare(std::move(job), pools, seed, secrets_);
  }

  [[nodiscard]] bool in_bucket() const { return options_.kept != options_.checkpoints; }

  Result<crds::CheckpointStorage> prepare_checkpoints() const {
    crds::CheckpointStorage storage;
    if (in_bucket()) {
      BSP_TRY(storage.s3, bucket_of(options_.checkpoints));
      BSP_CHECK_OK(make_directories(options_.kept));
      return storage;
    }
    storage.host_path = crds::HostPathSource{options_.checkpoints};
    // The sidecars, of another user, write into it; what it held before stays as it was.
    std::error_code failed;
    if (std::filesystem::create_directories(options_.checkpoints, failed))
      std::filesystem::permissions(options_.checkpoints,
                                   std::filesystem::perms::all | std::filesystem::perms::sticky_bit, failed);
    if (failed) return fail_errno("--checkpoints " + options_.checkpoints, failed.value());
    return storage;
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
          deleted_ = true;
          return cli::kFailed;
        case OneJob::Turn::kCannotServe:
          return cli::kFailed;
        case OneJob::Turn::kInterrupted:
          view_.say("Interrupted: stopping the job");
          return cli::kSignalled + one_.signal();
      }
    }
  }

  // So that the job can be resumed whatever becomes of this process.
  Result<void> keep_newest_set() {
    const auto& c = one_.job().status.checkpoint;
    if (options_.checkpoints.empty() || !c || c->sets.empty() || c->sets.back().id == kept_set_) return {};
    const kube::Key at{kSecret, options_.serve.place.name_space, reconcile::ShellOptions().authority_name};
    BSP_TRY(const kube::Object secret, one_.store().get(at));
    const auto seed = base64_decode(text_at(part_at(secret, "data"), "seed"));
    if (!seed) return fail(ErrorCode::kInvalid, "the seed of the checkpoint sets can't be read");
    BSP_CHECK_OK(keep_job(options_.kept, {one_.job(), *seed}));
    kept_set_ = c->sets.back().id;
    return {};
  }

  // A job that has succeeded, or was deleted, needs them no more.
  [[nodiscard]] bool needs_no_sets(int status) const {
    return !options_.checkpoints.empty() && (status == cli::kDone || deleted_);
  }
  Result<void> forget_sets() const {
    if (in_bucket())
      BSP_CHECK_OK(remove_from_bucket(*one_.job().spec.checkpoint.storage->s3, secrets_, uids_of_sets(one_.job())));
    return forget_job(options_.kept, one_.job());
  }

  // Says how a job goes on that may still need its sets.
  Result<void> settle_sets(int status) {
    if (options_.checkpoints.empty() || needs_no_sets(status)) return {};
    const auto& c = one_.job().status.checkpoint;
    if (!c || c->sets.empty()) return {};
    BSP_CHECK_OK(keep_newest_set());
    view_.say(std::format("bsp-operator local resume {} --pools … goes on from checkpoint set {}, superstep {}",
                          options_.checkpoints, c->sets.back().id, c->superstep.value));
    return {};
  }

  // Keeps what the job's status shows for a while only.
  void note() {
    const crds::BspJobStatus& status = one_.job().status;
    if (auto kept = keep_newest_set(); !kept && kept_trouble_.is_news(kept.error().message))
      view_.say("The job can't be resumed once this command has ended: " + kept.error().message);
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
    const std::string output = RankLog(0).next(rank_logs(one_.store().directory() + "/logs", job, 0), true);
    const nlohmann::json summary = summary_of(job, migrations, running_, output);
    if (!output.empty()) view_.say(std::format("Rank 0 wrote:\n{}", output));
    if (!summary["makespan_s"].is_null())
      view_.say(std::format("{} in {:.2f} s, {} of {} succeeded", counted(job.status.superstep.value, "superstep"),
                            summary["makespan_s"].get<double>(), job.status.migrations.succeeded,
                            counted(migrations.size(), "move")));
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
  OneJob::Secrets secrets_;  // of the bucket
  std::vector<screens::CallMade> calls_;
  Time running_{};
  std::uint64_t kept_set_ = 0;  // the newest that `local resume` knows
  reconcile::Trouble kept_trouble_;
  bool deleted_ = false;
};

Result<int> run_or_resume(std::span<const std::string> args, bool resumes) {
  BSP_TRY(auto options, parse(args, resumes));
  return Run(std::move(options))();
}

}  // namespace

Result<int> run(std::span<const std::string> args) { return run_or_resume(args, false); }
Result<int> resume(std::span<const std::string> args) { return run_or_resume(args, true); }

}  // namespace bsp::local
