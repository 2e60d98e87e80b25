#include "operator/local/cli/one_job.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <format>
#include <thread>

#include "base/core/base64.h"
#include "base/core/counted.h"
#include "base/core/log.h"
#include "base/json/fields.h"
#include "operator/cli/exit_code.h"
#include "operator/local/cli/admission.h"
#include "operator/local/cli/preflight.h"
#include "operator/local/cli/summary.h"
#include "operator/local/files.h"
#include "operator/local/network.h"
#include "operator/local/pod_plan.h"
#include "operator/local/pod_volumes.h"
#include "operator/local/podman.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/shell/shell_options.h"

namespace bsp::local {
namespace {

using namespace std::chrono_literals;

// Restarts of the operator's process without any change of the job, after which more restarts won't help.
constexpr int kMaxEnds = 10;
constexpr auto kMaxStalled = 60s;

std::string list_of(const std::vector<Pool>& pools) {
  std::string text;
  for (const Pool& pool : pools)
    text += std::format("{}{}={}x{}{}", text.empty() ? "" : ",", pool.name, pool.nodes,
                        pool.slots == 1 ? "" : std::format("{}x", pool.slots), pool.cpu);
  return text;
}

}  // namespace

Result<void> OneJob::check_job(const std::vector<Pool>& pools) const {
  BSP_CHECK_OK(podman::check_usable());
  BSP_CHECK_OK(check_kernel());
  const nlohmann::json* app = crds::app_container(job_.spec);
  if (auto image = podman::image_config(text_at(*app, "image")); !image)
    return std::unexpected(image.error().in("spec.template.spec.containers[app].image"));
  if (auto runtime = podman::image_config(std::string(names::kRuntimeImage)); !runtime)
    return std::unexpected(runtime.error().in("the runtime image (./dev images makes it)"));
  std::uint32_t slots = 0;
  for (const Pool& pool : pools) slots += pool.nodes * pool.slots;
  for (const std::string& name : job_.spec.sets.names)
    if (std::ranges::find(pools, name, &Pool::name) == pools.end())
      return fail(ErrorCode::kInvalid,
                  std::format("spec.sets.names: there is no pool {} in --pools {}", name, list_of(pools)));
  if (job_.spec.ranks > slots)
    return fail(ErrorCode::kInvalid,
                std::format("spec.ranks: {} don't fit into {}, because a slot takes one rank "
                            "(--pools {})",
                            counted(job_.spec.ranks, "rank"), counted(slots, "slot"), list_of(pools)));
  return {};
}

Result<void> OneJob::prepare(crds::BspJob job, const std::vector<Pool>& pools, const std::string& seed,
                             const Secrets& secrets) {
  const Place& place = options_.place;
  job_ = std::move(job);
  job_.metadata.name_space = place.name_space;
  BSP_CHECK_OK(check_job(pools));
  const StoreOptions options{.root = place.root, .name_space = place.name_space, .admission = admit};
  BSP_TRY(store_, Store::open(options));
  // Don't take over another process's cluster, and remove what a dead one has left.
  if (!try_lock_file(store_->directory() + "/.node.lock"))
    return fail(ErrorCode::kConflict,
                std::format("another bsp-operator runs the pods of namespace {}; stop it, or choose "
                            "another namespace with -n",
                            place.name_space));
  store_.reset();
  BSP_CHECK_OK(remove_cluster(place.root, place.name_space));
  BSP_TRY(store_, Store::open(options));
  for (const auto& node : nodes_of(pools)) BSP_CHECK_OK(store_->create(node).transform([](const auto&) {}));
  for (const auto& [name, values] : secrets)
    BSP_CHECK_OK(store_
                     ->create({{"apiVersion", "v1"},
                               {"kind", "Secret"},
                               {"metadata", {{"name", name}, {"namespace", place.name_space}}},
                               {"stringData", values}})
                     .transform([](const auto&) {}));
  nlohmann::json object;
  to_json(object, job_);
  BSP_TRY(nlohmann::json made, store_->create(object));
  if (seed.empty()) return {};
  made["status"] = object["status"];
  BSP_CHECK_OK(store_->update_status(made));
  return store_
      ->create({{"apiVersion", "v1"},
                {"kind", "Secret"},
                {"metadata", {{"name", reconcile::ShellOptions().authority_name}, {"namespace", place.name_space}}},
                {"type", "Opaque"},
                {"data", {{"seed", base64_encode(seed)}}}})
      .transform([](const auto&) {});
}

Result<void> OneJob::start() {
  sigset_t signals;
  sigemptyset(&signals);
  // SIGPIPE: nobody reads what the display says any more.
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&signals, s);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  signals_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  return start_operator();
}

Result<void> OneJob::start_operator() {
  return child_.start([this] {
    ::prctl(PR_SET_NAME, "bsp-operator");
    // The display shows what happens; the log is for users who ask for it.
    if (!std::getenv("BSP_LOG")) set_log_level(LogLevel::kWarning);
    const auto served = serve(options_);
    if (!served) cli::report_error(served.error());
    return served ? cli::kDone : cli::kCannotServe;
  });
}

// Restarts the operator if it has exited. False if it can't start; it has printed why.
Result<bool> OneJob::keep_operator() {
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
  say_(std::format("The operator's process exited ({} {}); restarting it while the job runs on",
                   WIFSIGNALED(*status) ? "signal" : "status",
                   WIFSIGNALED(*status) ? WTERMSIG(*status) : WEXITSTATUS(*status)));
  BSP_CHECK_OK(start_operator());
  return true;
}

Result<OneJob::Turn> OneJob::next() {
  BSP_TRY(const auto events, store_->wait({kBspJob, kRankMigration}, options_.place.name_space, cursor_, 100ms));
  for (const kube::WatchEvent& event : events) take(event);
  if (gone_) return Turn::kGone;
  if (crds::is_finished(job_.status.phase)) return Turn::kFinished;
  if (is_stalled()) return Turn::kCannotServe;
  BSP_TRY(const bool serves, keep_operator());
  if (!serves) return Turn::kCannotServe;
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof info) != sizeof info) return Turn::kGoesOn;
  signal_ = static_cast<int>(info.ssi_signo);
  return Turn::kInterrupted;
}

// True if the operator has been unable to reconcile the job for kMaxStalled. Says why at once.
bool OneJob::is_stalled() {
  const auto* c = crds::find_condition(job_.status.conditions, reconcile::kStalled);
  if (!c || c->status != crds::ConditionStatus::kTrue) return stalled_.clear(), false;
  if (c->message != stalled_) say_("The operator can't reconcile the job: " + c->message);
  stalled_ = c->message;
  return SystemClock{}.now() > c->last_transition_time + kMaxStalled;
}

void OneJob::take(const kube::WatchEvent& event) {
  ends_ = 0;
  if (text_at(event.object, "kind") == names::kBspJobKind) {
    auto job = crds::bsp_job_from_json(event.object);
    if (!job || job->metadata.name != job_.metadata.name) return;
    gone_ = event.type == kube::EventType::kDeleted;
    job_ = std::move(*job);
    return;
  }
  auto migration = crds::rank_migration_from_json(event.object);
  if (migration && event.type != kube::EventType::kDeleted)
    migrations_[migration->metadata.name] = std::move(*migration);
}

std::vector<crds::RankMigration> OneJob::migrations() const {
  std::vector<crds::RankMigration> list;
  for (const auto& [name, migration] : migrations_) list.push_back(migration);
  return list;
}

Result<void> OneJob::settle() {
  for (const auto until = std::chrono::steady_clock::now() + 3s;; std::this_thread::sleep_for(50ms)) {
    BSP_TRY(const auto last, store_->list(kRankMigration, options_.place.name_space));
    for (const kube::Object& object : last) take({kube::EventType::kModified, object});
    const auto written = [this](const auto& entry) {
      const crds::RankMigrationStatus& status = entry.second.status;
      const bool has_gain = status.phase == crds::MigrationPhase::kSucceeded && job_.status.realised_gain_seconds;
      return crds::is_finished(status.phase) && (!has_gain || status.realised_gain_seconds);
    };
    if (std::ranges::all_of(migrations_, written) || std::chrono::steady_clock::now() > until) return {};
    BSP_TRY(const bool serves, keep_operator());
    if (!serves) return {};
  }
}

Result<void> OneJob::await_output(std::uint32_t rank) {
  for (;; std::this_thread::sleep_for(50ms)) {
    BSP_TRY(const bool complete, has_all_output(*store_, job_, rank, SystemClock{}.now()));
    if (complete) return {};
    BSP_TRY(const bool serves, keep_operator());
    if (!serves) return {};
  }
}

Result<void> OneJob::remove() {
  child_.stop();
  return remove_cluster(options_.place.root, options_.place.name_space);
}

Result<void> remove_cluster(const std::string& root, const std::string& name_space) {
  const std::string directory = root + "/" + name_space;
  BSP_TRY(const auto containers, podman::containers_with(store_label(directory)));
  BSP_CHECK_OK(podman::remove_containers(containers, 0));
  BSP_CHECK_OK(Network(directory).remove());
  return remove_mounted_tree(directory);
}

}  // namespace bsp::local
