#include "operator/reconcile/kernel/job.h"

#include <algorithm>
#include <format>
#include <set>
#include <string_view>

#include "crds/fencing.h"
#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "operator/reconcile/kernel/checkpoints/reclaim.h"
#include "operator/reconcile/kernel/checkpoints/suspension.h"
#include "operator/reconcile/kernel/drain.h"
#include "operator/reconcile/kernel/history.h"
#include "operator/reconcile/kernel/job_kernel.h"
#include "operator/reconcile/kernel/pods/lost_pods.h"
#include "operator/reconcile/kernel/prices.h"
#include "operator/reconcile/kernel/rebuild.h"
#include "operator/reconcile/kernel/start/gang.h"
#include "operator/reconcile/kernel/start/start_queue.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

using crds::JobPhase;

namespace {
// How long the other containers of a pod may run once the job has ended.
constexpr std::chrono::seconds kOthersEnd{30};
}  // namespace

void JobKernel::enter(JobPhase phase, std::string reason, std::string message) {
  stores = true;
  // How a wave ends is an event of its own (wave_events).
  const bool of_wave = phase == JobPhase::kMigrating || status().phase == JobPhase::kMigrating;
  if (status().phase != phase)
    notices.events.push_back(
        {.type = phase == JobPhase::kFailed || phase == JobPhase::kRestarting ? "Warning" : "Normal",
         .reason = reason,
         .message = message,
         .only_logged = of_wave && (phase == JobPhase::kMigrating || phase == JobPhase::kRunning)});
  status().phase = phase;
  status().reason = std::move(reason);
  status().message = std::move(message);
  if (crds::is_finished(phase)) status().completion_time = o.now;
  if (crds::is_finished(phase) || phase == JobPhase::kSuspended)
    for (const char* waits : {kWaitingForSlots, kPodGroupRefused, kStartDelayed, kPodsRefused, kWaveDelayed, kDraining})
      if (is_on(status(), waits)) turn_condition(o, status(), waits, false, status().reason, "the job waits no more");
  // A drain of the next attempt has its own time.
  if (phase == JobPhase::kRestarting && is_on(status(), kDraining))
    turn_condition(o, status(), kDraining, false, status().reason, "the attempt has ended");
}

void JobKernel::fail_attempt(const Failure& failure) {
  const auto& policy = o.job.spec.run_policy;
  note_restart(failure.reason, failure.message,
               failure.rank ? std::optional<RankId>(RankId{*failure.rank}) : std::nullopt);
  change.show_logs_of = failure.seat;
  status().migrations.active = 0;
  if (failure.final) return enter(JobPhase::kFailed, failure.reason, failure.message);
  const std::uint32_t failed = failed_attempts(status());
  if (failed >= policy.backoff_limit)
    return enter(JobPhase::kFailed, failure.reason,
                 policy.backoff_limit == 0
                     ? failure.message
                     : std::format("{} (attempt {} of {})", failure.message, failed + 1, policy.backoff_limit + 1));
  ++status().attempt;
  if (auto& c = status().checkpoint) {
    ++c->without_progress;
    ++c->losses;
  }
  enter(JobPhase::kRestarting, failure.reason, failure.message);
}

void JobKernel::note_restart(std::string reason, std::string message, std::optional<RankId> rank) {
  auto& restarts = status().restarts;
  restarts.push_back({.attempt = status().attempt,
                      .time = o.now,
                      .reason = std::move(reason),
                      .message = std::move(message),
                      .rank = rank});
  if (restarts.size() > crds::kShownRestarts) restarts.erase(restarts.begin());
}

bool JobKernel::past_deadline() const {
  const auto deadline = o.job.spec.run_policy.active_deadline_seconds;
  // A Duration ends after 292 years.
  return deadline && o.job.status.start_time != Time{} && to_seconds(o.started_for) > static_cast<double>(*deadline);
}

void JobKernel::fail_by_deadline() {
  fail_attempt({{},
                {},
                "DeadlineExceeded",
                std::format("the job ran longer than spec.runPolicy.activeDeadlineSeconds ({} s)",
                            *o.job.spec.run_policy.active_deadline_seconds),
                true});
}

bool JobKernel::container_ends(const Failure& failure) const {
  const AppFacts* app = o.app(failure.seat);
  const SidecarFacts* sidecar = o.sidecar(failure.seat);
  if (!app || !sidecar || app->ended) return false;
  return sidecar->status && sidecar->status->phase == wire::RankPhase::kExited &&
         o.steady - sidecar->phase_since < job_limits.container_end;
}

bool exited_well(const AppFacts* app, const wire::RankStatus* said) {
  if (said && said->phase == wire::RankPhase::kExited) return said->exit_code == 0 && said->exit_signal == 0;
  return app && app->ended && app->exit_code == 0;
}

bool JobKernel::exited_well(const crds::RankPlace& place) const {
  return reconcile::exited_well(o.app(place.seat()), o.said(place.seat()));
}

bool JobKernel::pods_left() const {
  return !o.being_made.empty() ||
         std::ranges::any_of(o.pods, [](const auto& entry) { return !entry.second.abandoned; });
}

void JobKernel::note_lost_pods() {
  constexpr std::string_view kWaits = "; the next attempt waits until nothing of this one can run on ";
  const auto lost = std::ranges::find_if(o.pods, [](const auto& entry) {
    return (entry.second.lost || entry.second.vanished) && !entry.second.abandoned;
  });
  if (lost == o.pods.end() || status().message.contains(kWaits)) return;
  if (!lost->second.lost) {
    status().message += std::format(
        "{}node {}: nobody saw the program in pod {} end before the pod was removed, so it has its grace period ({} s) "
        "and {:.0f} s more",
        kWaits, lost->second.node, lost->first, lost->second.grace_seconds, to_seconds(fencing::kMargin));
    return;
  }
  status().message += std::format(
      "{}node {}: a minute, or, if every rank was on nodes that do not answer, until it is back, its Node is deleted "
      "or it is "
      "tainted node.kubernetes.io/out-of-service",
      kWaits, lost->second.node);
}

void JobKernel::remember_vanished() {
  auto vanished = crds::is_finished(status().phase) ? std::vector<crds::VanishedPod>() : vanished_in(o.pods);
  if (vanished == status().vanished) return;
  status().vanished = std::move(vanished);
  stores = true;
}

void JobKernel::delete_all_pods() {
  for (const auto& [name, pod] : o.pods)
    if (!pod.deleting) work.delete_pods.push_back(name);
}

void JobKernel::refuse(const Refusal& refusal) {
  for (const auto& m : o.migrations)
    if (m.metadata.name == refusal.migration) notices.migrations.push_back(refused(m, refusal, o.now));
}

void JobKernel::end_orphans(const migrate::Wave* wave) {
  for (const Refusal& refusal : orphans(wave, o)) refuse(refusal);
}

// Each answer reconciles the job again, where there are thousands.
void JobKernel::refuse_older() {
  constexpr std::size_t kPerReconcile = 16;
  std::size_t answered = 0;
  for (const crds::RankMigration& m : o.older_migrations) {
    if (crds::is_finished(m.status.phase) || m.metadata.deletion_timestamp != Time{}) continue;
    if (answered++ == kPerReconcile) return;
    notices.migrations.push_back(
        refused(m,
                {m.metadata.name, "OlderThanJob",
                 std::format("it was made before this BSPJob {}, so it meant an earlier one: make it again to move a "
                             "rank of this one",
                             o.job.metadata.name)},
                o.now));
  }
}

void JobKernel::end_departures() {
  for (const MoveRequest& request : waiting_requests(o))
    if (request.away) refuse({request.migration, "PodsEnded", "the rank has left its node: its pod has ended"});
}

// So that a job that fails at once costs its cluster little: 10 s, 20, 40 and so on.
Duration JobKernel::restart_pause() const {
  Duration pause = job_limits.restart;
  const auto& c = o.job.status.checkpoint;
  const std::uint32_t failed = c ? c->without_progress : o.job.status.attempt;
  for (std::uint32_t i = 1; i < failed && pause < kLongestRestart; ++i) pause *= 2;
  return std::min<Duration>(pause, kLongestRestart);
}

void JobKernel::restarting() {
  if (auto wave = stored_wave(status()); wave && *wave && migrate::is_finished(**wave))
    notices.migrations = show_wave(**wave, o);
  end_departures();
  if (pods_left()) {
    if (past_deadline()) return fail_by_deadline();
    note_lost_pods();
    return delete_all_pods();
  }
  if (past_deadline()) return fail_by_deadline();
  if (const Duration pause = restart_pause(); o.restarting_for < pause) {
    constexpr std::string_view kNext = "; the next attempt begins ";
    if (!status().message.contains(kNext)) {
      status().message += std::format("{}{:.0f} s after the end of this one", kNext, to_seconds(pause));
      stores = true;
    }
    return;
  }
  if (!notices.migrations.empty()) return;  // the next attempt drops the wave, so its RankMigrations must have ended
  enter(JobPhase::kPending, "Restarting", std::format("attempt {}", status().attempt + 1));
}

std::pair<std::string, std::string> JobKernel::hold() const {
  if (o.job.spec.run_policy.suspend) return {"Suspended", "spec.runPolicy.suspend is set"};
  return {kQueued, why_held(*o.queued)};
}

void JobKernel::suspend() {
  auto [reason, message] = hold();
  end_hold(status());
  enter(JobPhase::kSuspended, std::move(reason), message + what_is_kept(o.job.spec, status()));
}

void JobKernel::suspended() {
  if (auto wave = stored_wave(status()); wave && *wave && migrate::is_finished(**wave))
    notices.migrations = show_wave(**wave, o);
  end_departures();
  if (pods_left()) return delete_all_pods();
  if (status().epoch) {
    // Nothing of it is left: a new leader needn't look for its pods.
    status().epoch.reset();
    stores = true;
  }
  if (held()) {
    const auto [reason, message] = hold();
    // What is kept was said when the pods began to go.
    if (status().reason == reason && (status().message == message || status().message.starts_with(message + "; ")))
      return;
    stores = true;
    status().reason = reason;
    status().message = message + what_is_kept(o.job.spec, status());
    return;
  }
  if (!notices.migrations.empty()) return;
  status().start_time = {};  // the deadline counts from the resumption, as a Job's does
  enter(JobPhase::kPending, "Resumed", o.queued ? "Kueue has admitted the job" : "spec.runPolicy.suspend was cleared");
}

void JobKernel::finished() {
  auto wave = stored_wave(status());
  const bool ended = wave && *wave && migrate::is_finished(**wave);
  if (ended) notices.migrations = show_wave(**wave, o);
  end_orphans(ended ? &**wave : nullptr);
  const auto policy = o.job.spec.run_policy.clean_pod_policy;
  std::set<std::string_view> pods_of_ranks, with_programs;
  for (const crds::RankPlace& place : status().ranks) {
    pods_of_ranks.insert(place.pod);
    // The sidecar reports an end before the node does; the pod holds the log that says why.
    const AppFacts* app = o.app(place.seat());
    const wire::RankStatus* said = o.said(place.seat());
    if (!(app && app->ended) && !(said && said->phase == wire::RankPhase::kExited)) with_programs.insert(place.pod);
  }
  for (const auto& [name, pod] : o.pods) {
    const bool current = pods_of_ranks.contains(name);
    // A pod whose other containers never end holds its slot for as long as it exists.
    const bool runs = with_programs.contains(name) || (pod.others_run && o.ended_for > kOthersEnd);
    const bool remove =
        policy == crds::CleanPodPolicy::kAll || !current || (policy == crds::CleanPodPolicy::kRunning && runs);
    if (remove && !pod.deleting) work.delete_pods.push_back(name);
  }
  for (const auto& m : o.migrations)
    if (m.status.phase == migrate::Phase::kPending && std::ranges::none_of(notices.migrations, [&](const auto& noted) {
          return noted.metadata.name == m.metadata.name;
        }))
      notices.migrations.push_back(refused(m, {m.metadata.name, "JobFinished", "the job has ended"}, o.now));
  if (const auto ttl = o.job.spec.run_policy.ttl_seconds_after_finished;
      ttl && to_seconds(o.ended_for) > static_cast<double>(*ttl))
    work.remove_job = true;
}

void JobKernel::by_phase() {
  switch (o.job.status.phase) {
    case JobPhase::kPending:
      return pending();
    case JobPhase::kStarting:
      return starting();
    case JobPhase::kRunning:
    case JobPhase::kMigrating:
      return running();
    case JobPhase::kRestarting:
      return restarting();
    case JobPhase::kSuspended:
      return suspended();
    case JobPhase::kSucceeded:
    case JobPhase::kFailed:
      return finished();
  }
}

void JobKernel::deleted() {
  delete_all_pods();
  if (!nothing_runs(o)) return;
  Reclaim reclaim = reclaim_sets(o, job_limits.reclaim, status());
  stores = reclaim.stores;
  notices.events = std::move(reclaim.events);
  work.make_remover = reclaim.make_remover;
  work.delete_remover = reclaim.delete_remover;
  work.remove_finalizer = reclaim.over;
}

// Each of these conditions comes with one event, so it is stored as soon as it turns.
void JobKernel::warn() {
  auto raised = [&](const char* condition) {
    stores = true;
    notices.events.push_back({"Warning", condition, crds::find_condition(status().conditions, condition)->message});
  };
  const bool has_ranks = has_places(status().phase);
  for (const char* condition : warn_of_silence(o, has_ranks ? silence : Silence{}, status(), stores)) raised(condition);
  if (warn_of_throttling(o, status())) raised(kCpuThrottled);
  if (warn_of_no_supersteps(o, status())) raised(kNoSupersteps);
  if (warn_of_mixed_units(o, status())) raised(kMixedUnits);
  if (warn_of_cpu_features(o, status())) raised(kCpuFeaturesDiffer);
  if (warn_of_move_memory(o, status())) raised(kMovesLackMemory);
  if (warn_of_prices(o, status())) raised(kPricesUnknown);
  if (warn_of_seccomp(o, status())) raised(kSeccompReplaced);
  if (warn_of_overrides(o, status())) raised(kTemplateOverridden);
  if (warn_of_gang(o, status())) raised(kGangNotEnsured);
  if (warn_of_rejected_reports(o, status())) raised(kReportsRejected);
  if (!is_on(status(), kUnreadable)) return;
  stores = true;
  turn_condition(o, status(), kUnreadable, false, "Readable", "the job can be read, and goes on");
  notices.events.push_back({"Normal", "Readable", "the job can be read, and goes on"});
}

Step JobKernel::take() {
  if (stores) {
    change.notices = std::move(notices);
    return Step(std::move(change));
  }
  work.progress = std::move(change.status);
  work.notices = std::move(notices);
  return Step(std::move(work));
}

// What can wait for the next stored change while ranks run. Of a job that has ended there may be none; and whoever changes its
// spec may wait for a condition, which counts from that generation on only. A blank status must stay so until it is rebuilt.
bool JobKernel::has_late_news() const {
  if (o.job.status.phase == JobPhase::kMigrating || is_blank(o.job.status)) return false;
  return o.job.status.observed_generation != change.status.observed_generation ||
         (crds::is_finished(o.job.status.phase) && o.job.status.superstep != change.status.superstep);
}

Step reconcile_job(const Observed& o, const Advice& advice, const migrate::Limits& limits,
                   const JobLimits& job_limits) {
  JobKernel k{o, advice, limits, job_limits, {.status = advice.status}, judge_silence(o, job_limits)};
  k.status().observed_generation = o.job.metadata.generation;
  if (o.job.metadata.deletion_timestamp != Time{}) {
    k.deleted();
    return k.take();
  }
  k.by_phase();
  k.refuse_older();
  k.remember_vanished();
  k.work.protect = pods_to_keep(o, k.status().phase);
  refresh_status(o, k.status());
  k.warn();
  k.stores |= k.has_late_news();
  if (o.queued) k.work.workload = workload_writes(o, k.pods_left());
  // Not while ranks may be stopped, because every request takes time.
  if (o.job.status.phase != JobPhase::kMigrating) k.work.delete_migrations = beyond_history(o);
  return k.take();
}

}  // namespace bsp::reconcile
