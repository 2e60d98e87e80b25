#include "operator/local/cli/run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "base/core/fd.h"
#include "base/core/log.h"
#include "base/core/read_file.h"
#include "base/json/fields.h"
#include "crds/manifest.h"
#include "operator/cli/exit_code.h"
#include "operator/local/cli/admission.h"
#include "operator/local/cli/place.h"
#include "operator/local/cli/preflight.h"
#include "operator/local/cli/serve.h"
#include "operator/local/cli/summary.h"
#include "operator/local/cli/view.h"
#include "operator/local/files.h"
#include "operator/local/network.h"
#include "operator/local/pod_plan.h"
#include "operator/local/pod_volumes.h"
#include "operator/local/podman.h"
#include "operator/local/pools.h"
#include "operator/local/process.h"
#include "operator/local/store.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/shell/record.h"
#include "operator/screens/timeline.h"

namespace bsp::local {
namespace {

using namespace std::chrono_literals;

struct RunOptions {
  std::string file;
  std::string pools;
  std::string mode;
  std::string summary;
  std::string timeline;
  bool plain = false;
  ServeOptions serve;
};

Result<RunOptions> parse(std::span<const std::string> words) {
  RunOptions o;
  cli::Command command("bsp-operator local run",
                       "Run a job on this machine, and remove everything it started when the job ends.");
  command.text("-f,--filename", "JOB.yaml", "a BSPJob, as kubectl apply takes it", o.file).required();
  command
      .text("--pools", "NAME=SLOTSxCPU,…",
            "the Sets: slow=3x0.25,fast=2x0.6 has three slots of a quarter of a core and two of 0.6 cores", o.pools)
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
  command.flag("--plain", "print plain lines even on a terminal", o.plain);
  declare_place(command, o.serve.place);
  BSP_CHECK_OK(command.parse(words));
  return o;
}

// Restarts of the operator's process without any change of the job, after which more restarts won't help.
constexpr int kMaxEnds = 10;
constexpr auto kMaxStalled = 60s;

class Run {
 public:
  explicit Run(RunOptions options)
      : options_(std::move(options)), view_(stdout, !options_.plain && ::isatty(STDOUT_FILENO) == 1) {}

  Result<int> operator()() {
    BSP_CHECK_OK(prepare());
    sigset_t signals;
    sigemptyset(&signals);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, s);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    signals_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    auto status = work();
    view_.say("Removing the job and the cluster");
    child_.stop();
    if (auto removed = remove_cluster(options_.serve.place.root, options_.serve.place.name_space); !removed && status)
      return std::unexpected(removed.error().in("cleaning up"));
    return status;
  }

 private:
  // Checks everything that can be checked before anything is started.
  Result<void> prepare() {
    BSP_TRY(const auto pools, parse_pools(options_.pools));
    BSP_TRY(const std::string text, read_file(options_.file));
    BSP_TRY(job_, crds::read_bsp_job(text, options_.file));
    job_.metadata.name_space = options_.serve.place.name_space;
    if (!options_.mode.empty()) {
      auto mode = crds::enum_from<crds::ReschedulingMode>(options_.mode);
      if (!mode) return std::unexpected(mode.error().in("--mode"));
      job_.spec.rescheduling.mode = *mode;
    }
    if (!options_.serve.record.empty())
      if (auto good = reconcile::check_appendable(options_.serve.record); !good)
        return std::unexpected(good.error().in("--record"));
    if (!options_.timeline.empty())
      if (auto good = reconcile::check_appendable(options_.timeline); !good)
        return std::unexpected(good.error().in("--timeline"));
    BSP_CHECK_OK(podman::check_usable());
    BSP_CHECK_OK(check_kernel());
    const nlohmann::json* app = crds::app_container(job_.spec);
    if (auto image = podman::image_config(text_at(*app, "image")); !image)
      return std::unexpected(image.error().in("spec.template.spec.containers[app].image"));
    if (auto runtime = podman::image_config(std::string(names::kRuntimeImage)); !runtime)
      return std::unexpected(runtime.error().in("the runtime image (./dev images makes it)"));
    std::uint32_t slots = 0;
    for (const Pool& pool : pools) slots += pool.slots;
    for (const std::string& name : job_.spec.sets.names)
      if (std::ranges::find(pools, name, &Pool::name) == pools.end())
        return fail(ErrorCode::kInvalid,
                    std::format("spec.sets.names: there is no pool {} in --pools {}", name, options_.pools));
    if (job_.spec.ranks > slots)
      return fail(ErrorCode::kInvalid,
                  std::format("spec.ranks: {} ranks don't fit into {} slots, because a slot takes one rank "
                              "(--pools {})",
                              job_.spec.ranks, slots, options_.pools));
    BSP_TRY(store_, Store::open({.root = options_.serve.place.root,
                                 .name_space = options_.serve.place.name_space,
                                 .admission = admit}));
    // Don't take over another process's cluster, and remove what a dead one has left.
    if (!try_lock_file(store_->directory() + "/.node.lock"))
      return fail(ErrorCode::kConflict,
                  std::format("another bsp-operator runs the pods of namespace {}; stop it, or choose "
                              "another namespace with -n",
                              options_.serve.place.name_space));
    store_.reset();
    BSP_CHECK_OK(remove_cluster(options_.serve.place.root, options_.serve.place.name_space));
    BSP_TRY(store_, Store::open({.root = options_.serve.place.root,
                                 .name_space = options_.serve.place.name_space,
                                 .admission = admit}));
    for (const auto& node : nodes_of(pools)) BSP_CHECK_OK(store_->create(node).transform([](const auto&) {}));
    nlohmann::json object;
    to_json(object, job_);
    return store_->create(object).transform([](const auto&) {});
  }

  Result<void> start_operator() {
    return child_.start([this] {
      ::prctl(PR_SET_NAME, "bsp-operator");
      // The display shows what happens; the log is for users who ask for it.
      if (!std::getenv("BSP_LOG")) set_log_level(LogLevel::kWarning);
      const auto served = serve(options_.serve);
      if (!served) cli::report_error(served.error());
      return served ? cli::kDone : cli::kCannotServe;
    });
  }

  // Restarts the operator if it has exited. False if it can't start; it has printed why.
  Result<bool> keep_operator() {
    const auto status = child_.ended();
    if (!status) return true;
    if (WIFEXITED(*status) && WEXITSTATUS(*status) == cli::kCannotServe) return false;
    if (++ends_ > kMaxEnds)
      return fail(
          ErrorCode::kFailed,
          std::format(
              "the operator's process exited {} times without any progress of the job; please report this with the "
              "messages above",
              ends_));
    view_.say(std::format("The operator's process exited ({} {}); restarting it while the job runs on",
                          WIFSIGNALED(*status) ? "signal" : "status",
                          WIFSIGNALED(*status) ? WTERMSIG(*status) : WEXITSTATUS(*status)));
    BSP_CHECK_OK(start_operator());
    return true;
  }

  Result<int> work() {
    BSP_CHECK_OK(start_operator());
    std::string cursor;
    for (;;) {
      BSP_TRY(const auto events,
              store_->wait({kBspJob, kRankMigration}, options_.serve.place.name_space, cursor, 100ms));
      for (const kube::WatchEvent& event : events) take(event);
      view_.update(job_, migrations());
      if (gone_) {
        view_.say("The job was deleted");
        return 1;
      }
      if (crds::is_finished(job_.status.phase)) return finish();
      if (is_stalled()) return 1;
      BSP_TRY(const bool serves, keep_operator());
      if (!serves) return 1;
      signalfd_siginfo info{};
      if (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        view_.say("Interrupted: stopping the job");
        return cli::kSignalled + static_cast<int>(info.ssi_signo);
      }
    }
  }

  // True if the operator has been unable to reconcile the job for kMaxStalled. Prints why at once.
  bool is_stalled() {
    const auto* c = crds::find_condition(job_.status.conditions, reconcile::kStalled);
    if (!c || c->status != crds::ConditionStatus::kTrue) return stalled_.clear(), false;
    if (c->message != stalled_) view_.say("The operator can't reconcile the job: " + c->message);
    stalled_ = c->message;
    return SystemClock{}.now() > c->last_transition_time + kMaxStalled;
  }

  void take(const kube::WatchEvent& event) {
    ends_ = 0;
    if (text_at(event.object, "kind") == names::kBspJobKind) {
      auto job = crds::bsp_job_from_json(event.object);
      if (!job || job->metadata.name != job_.metadata.name) return;
      gone_ = event.type == kube::EventType::kDeleted;
      job_ = std::move(*job);
      if (running_ == Time{} && job_.status.phase == crds::JobPhase::kRunning)
        if (const auto* c = crds::find_condition(job_.status.conditions, "Running")) running_ = c->last_transition_time;
      if (const auto& d = job_.status.last_decision; d && (calls_.empty() || calls_.back().time != d->time))
        calls_.push_back(screens::call_of(*d));
      return;
    }
    auto migration = crds::rank_migration_from_json(event.object);
    if (migration && event.type != kube::EventType::kDeleted)
      migrations_[migration->metadata.name] = std::move(*migration);
  }

  std::vector<crds::RankMigration> migrations() const {
    std::vector<crds::RankMigration> list;
    for (const auto& [name, migration] : migrations_) list.push_back(migration);
    return list;
  }

  Result<int> finish() {
    // The operator writes the outcome of migrations on other threads, a moment after the job's.
    for (const auto until = std::chrono::steady_clock::now() + 3s;; std::this_thread::sleep_for(50ms)) {
      BSP_TRY(const auto last, store_->list(kRankMigration, options_.serve.place.name_space));
      for (const kube::Object& object : last) take({kube::EventType::kModified, object});
      const auto written = [this](const auto& entry) {
        const crds::RankMigrationStatus& status = entry.second.status;
        const bool has_gain = status.phase == crds::MigrationPhase::kSucceeded && job_.status.realised_gain_seconds;
        return crds::is_finished(status.phase) && (!has_gain || status.realised_gain_seconds);
      };
      if (std::ranges::all_of(migrations_, written) || std::chrono::steady_clock::now() > until) break;
      BSP_TRY(const bool serves, keep_operator());
      if (!serves) break;
    }
    view_.update(job_, migrations());
    const std::string output = rank_output(store_->directory() + "/logs", job_, 0);
    const nlohmann::json summary = summary_of(job_, migrations(), running_, output);
    if (!output.empty()) view_.say(std::format("Rank 0 wrote:\n{}", output));
    if (!summary["makespan_s"].is_null())
      view_.say(std::format("{} supersteps in {:.2f} s, {} of {} moves succeeded", job_.status.superstep.value,
                            summary["makespan_s"].get<double>(), job_.status.migrations.succeeded, migrations_.size()));
    BSP_CHECK_OK(draw_timeline());
    if (!options_.summary.empty())
      BSP_CHECK_OK(replace_file(options_.summary, options_.summary + ".new", summary.dump(2) + "\n"));
    return job_.status.phase == crds::JobPhase::kSucceeded ? 0 : 1;
  }

  // A record has each call; without one, what the status showed of them.
  Result<void> draw_timeline() {
    if (options_.timeline.empty()) return {};
    std::vector<screens::CallMade> calls = calls_;
    if (auto recorded = screens::calls_of_file(options_.serve.record, job_); recorded && !recorded->empty())
      calls = std::move(*recorded);
    const std::string svg = screens::timeline_svg({job_, migrations()}, calls, running_, SystemClock::now());
    return replace_file(options_.timeline, options_.timeline + ".new", svg);
  }

  RunOptions options_;
  crds::BspJob job_;
  std::unique_ptr<Store> store_;
  ChildProcess child_;
  View view_;
  Fd signals_;
  std::map<std::string, crds::RankMigration> migrations_;
  std::vector<screens::CallMade> calls_;
  Time running_{};
  std::string stalled_;  // the last printed message
  int ends_ = 0;         // exits of the operator's process since the job or a migration changed
  bool gone_ = false;
};

}  // namespace

Result<void> remove_cluster(const std::string& root, const std::string& name_space) {
  const std::string directory = root + "/" + name_space;
  BSP_TRY(const auto containers, podman::containers_with(store_label(directory)));
  BSP_CHECK_OK(podman::remove_containers(containers, 0));
  BSP_CHECK_OK(Network(directory).remove());
  return remove_mounted_tree(directory);
}

int run(std::span<const std::string> args) {
  auto options = parse(args);
  if (!options) return cli::report_error(options.error());
  auto status = Run(std::move(*options))();
  if (status) return *status;
  cli::report_error(status.error());
  return cli::kFailed;
}

}  // namespace bsp::local
