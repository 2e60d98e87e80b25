#include "operator/reconcile/shell/job/job_shell.h"

#include <algorithm>
#include <utility>

#include "base/core/guard.h"
#include "base/core/log.h"
#include "operator/reconcile/shell/job/source_job.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;

namespace {
constexpr int kMostChanges = 16;
constexpr auto kQuiet = 15s;  // nothing is left to do for it
constexpr auto kStartingJob = 3s;
}  // namespace

JobShell::JobShell(const ShellParts& parts, const JobRef& job, std::function<void()> changed)
    : parts_(parts, job, std::move(changed)),
      pods_(parts_),
      pod_group_(parts_),
      status_(parts_),
      removal_(parts_),
      remover_(parts_),
      stored_(parts_, pods_, removal_),
      advisor_({.calls = parts.options.calls, .records = parts.options.record != nullptr}),
      preparation_(parts_, stored_, status_, pods_.maker()),
      follower_(parts_, pods_, pod_group_, advisor_),
      applier_(parts_, status_, pods_, pod_group_, advisor_, removal_, remover_),
      stall_(parts_) {}

Duration JobShell::reconcile() {
  if (const Duration rest = stall_.left(); rest > Duration{}) return rest;
  if (const auto failed = parts_.calls->take_error()) return stall(*failed);
  const auto next = guarded([&] { return reconcile_until_stored(); });
  if (!next) return stall(next.error());
  stall_.end(stored_.last());
  if (*next >= kIdle) stored_.release();
  return *next;
}

// Anything derived from the objects may be half done, so they are read again.
Duration JobShell::stall(const Error& error) {
  stored_.release();
  advisor_.forget();
  follower_.lose_sight();
  return stall_.begin(error);
}

// Lets go of a job that is gone or can't be read. One that can't be read has its links all the same, also those of an operator that
// has never read it: who hears an operator isn't cut off.
Duration JobShell::let_go() {
  follower_.lose_sight();
  if (!stored_.stands_still()) {
    preparation_.close_links();
    return kQuiet;
  }
  const auto sidecars = preparation_.link(stored_.named());
  if (!sidecars) {
    log_warning("failed to link a job's sidecars", {{"job", parts_.job.key()}, {"error", sidecars.error().message}});
    return kIdle;
  }
  follower_.greet(**sidecars);
  return kQuiet;
}

Duration JobShell::reconcile_until_stored() {
  const crds::BspJob* job = stored_.read();
  if (!job) return let_go();
  const auto prepared = preparation_.prepare(*job);
  if (!prepared) return kIdle;
  parts_.calls->set_lane(job->status.phase == crds::JobPhase::kMigrating ? kube::Lane::kUrgent : kube::Lane::kOrdinary);
  // A stored change alters what is to be done, so everything is read and decided again until nothing is to be stored.
  // That ends: each change takes the job or its wave one step along its drawing (job.h, migrate/README.md), turns a
  // condition, or holds a decision, of which there is one in so many supersteps. The longest way, a whole wave whose work
  // is done already, has fewer changes than kMostChanges, which only keeps a kernel that never rests from holding a worker.
  for (int changes = 0; changes < kMostChanges; ++changes) {
    job = stored_.read();
    if (!job) return let_go();
    Observed o = follower_.observe(*job, prepared->sidecars);
    if (awaits_source(*job)) o.source = read_source(parts_.shell.client, *job, prepared->signer->grant);
    if (job->metadata.deletion_timestamp != Time{}) remover_.add_to(o);
    follower_.ask(o, prepared->sidecars);
    const Advice advice = advisor_.advance(o);
    const Step step = reconcile_job(o, advice, parts_.shell.options.limits, parts_.shell.options.job_limits);
    if (const StatusChange* const change = step.change()) {
      if (const auto again = applier_.apply(o, advice, *change)) return *again;
      continue;
    }
    applier_.apply(o, advice, step.work(), *prepared);
    return until_next(o, step.work());
  }
  return kRetry;
}

// A job that has ended, is suspended or waits for its pods is reconciled again when something of it changes; only its time
// to live and the next attempt to create a pod need a timer. The limits of a start are minutes.
Duration JobShell::until_next(const Observed& o, const Work& work) const {
  const crds::JobPhase phase = o.job.status.phase;
  if (o.job.metadata.deletion_timestamp != Time{}) return kIdle;
  if (phase == crds::JobPhase::kRunning) return std::max<Duration>(follower_.until_next_reports(), 1ms);
  // An epoch that is being opened, or a wave: limits are short, and a verb may have to be sent again.
  const bool starting = phase == crds::JobPhase::kStarting;
  if (phase == crds::JobPhase::kMigrating || (starting && o.job.status.epoch)) return kRetry;
  if (starting) return std::max<Duration>(pods_.until_next_try(kStartingJob), kRetry);
  const bool over = crds::is_finished(phase);
  if (!over && phase != crds::JobPhase::kSuspended) return kIdle;
  if (!work.delete_pods.empty() || !work.notices.migrations.empty() || !work.delete_migrations.empty() ||
      work.remove_job || work.remove_finalizer)
    return kIdle;
  Duration next = kQuiet;
  if (const auto ttl = o.job.spec.run_policy.ttl_seconds_after_finished; over && ttl)
    next = std::min(next, from_seconds(std::min(static_cast<double>(*ttl), 1e9)) - o.ended_for + kRetry);
  return std::max<Duration>(next, kRetry);
}

}  // namespace bsp::reconcile
