// Applying a step: a status is stored, or what follows from the stored one is done.
#include <algorithm>
#include <format>

#include "base/core/fault.h"
#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/drain.h"
#include "operator/reconcile/kernel/move_memory.h"
#include "operator/reconcile/shell/job_shell.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {
constexpr auto kStartingJob = 3s;
constexpr auto kProtectAgain = 1min;

// What a program prints need not be UTF-8, and a status must be.
std::string as_utf8(const std::string& bytes) {
  return json::parse(json(bytes).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}
}  // namespace

std::optional<Duration> JobShell::apply(const Observed& o, const Advice& advice, const StatusChange& change) {
  crds::BspJobStatus status = change.status;
  if (!append_logs(change.show_logs_of, status.message)) return kRetry;
  if (!change.reserve.empty())
    if (const auto reserved = reserve(o, change); !reserved) {
      if (reserved.error().code == ErrorCode::kConflict) return std::nullopt;
      return kIdle;
    }
  if (!status_.store(o.job, status)) return std::max<Duration>(kRetry, status_.until_next_try());
  meter_.stored(o.job.status, status);
  // Only now: if this operator is killed before, the next one makes the call again.
  if (advice.call && advice.call->record)
    options_.record(job_ref_.at.name_space, job_ref_.at.name, *advice.call->record);
  advisor_.stored();
  for (const Event& event : change.notices.events)
    fault_point("operator." + event.reason);  // stored; nothing of it done yet
  keep(change.notices);
  return std::nullopt;
}

Duration JobShell::apply(const Observed& o, const Advice& advice, const Work& work) {
  keep(work.notices);
  do_work(o, work);
  meter_.show(o, work.progress);
  const auto now = std::chrono::steady_clock::now();
  // Progress can wait while ranks can't.
  const bool waits = crds::is_finished(o.job.status.phase) || stands_still(o);
  if (!advice.gains.empty() || (!waits && status_.progress_is_due(o.job.status.phase)))
    if (status_.store(o.job, work.progress)) meter_.stored(o.job.status, work.progress);
  // An epoch that is being opened, or a wave: limits are short, and a verb may have to be sent again.
  const bool opening = o.job.status.phase == crds::JobPhase::kStarting && o.job.status.epoch;
  if (opening || o.job.status.phase == crds::JobPhase::kMigrating) return kRetry;
  if (o.job.status.phase != crds::JobPhase::kRunning) return rest(o, work);
  return std::max<Duration>(next_report_ - now, Duration(1ms));
}

// A job that has ended, is suspended or waits for its pods is reconciled again when something of it changes; only its time
// to live and the next attempt to create a pod need a timer. The limits of a start are minutes.
Duration JobShell::rest(const Observed& o, const Work& work) const {
  const bool over = crds::is_finished(o.job.status.phase);
  if (o.job.status.phase == crds::JobPhase::kStarting)
    return std::max<Duration>(pods_.until_next_try(kStartingJob), kRetry);
  if (!over && o.job.status.phase != crds::JobPhase::kSuspended) return kIdle;
  if (!work.delete_pods.empty() || !work.notices.migrations.empty() || !work.forget.empty() || work.remove_job ||
      work.remove_finalizer)
    return kIdle;
  Duration next = kQuiet;
  if (const auto ttl = o.job.spec.run_policy.ttl_seconds_after_finished; over && ttl)
    next = std::min(next, from_seconds(std::min(static_cast<double>(*ttl), 1e9)) - o.ended_for + kRetry);
  return std::max<Duration>(next, kRetry);
}

bool JobShell::append_logs(const std::string& pod, std::string& message) {
  if (pod.empty()) return true;
  const auto tail = tails_.of(pod);
  if (!tail) return false;
  if (!tail->empty()) message += std::format("; the last lines of {}:\n{}", pod, as_utf8(*tail));
  return true;
}

// Notices wait until the sidecars have been asked for everything that follows from the stored status: every write takes
// time, and ranks may stand still.
void JobShell::keep(const Notices& notices) {
  std::ranges::copy(notices.events, std::back_inserter(pending_events_));
  for (const auto& migration : notices.migrations) migrations_.add(migration);
}

// Before the start or the wave that needs the slots is stored: every later decision sees them taken.
Result<void> JobShell::reserve(const Observed& o, const StatusChange& change) {
  const bool start = change.status.phase == crds::JobPhase::kStarting;
  // More would outgrow what a ConfigMap holds; such a job starts as its pods find nodes.
  constexpr std::size_t kMostOfAStart = 4096;
  if (start && change.reserve.size() > kMostOfAStart) return {};
  Reservation reservation{.uid = job_ref_.uid,
                          .wave = change.status.wave,
                          .each = requests_of_rank(o.job.spec.pod_template, o.job.spec.sidecar.resources),
                          .checkpoint = start ? 0 : MoveCapacity(o).of_largest().checkpoint,
                          .slots = change.reserve,
                          .until = o.now + kReservationKept,
                          .start = start};
  auto reserved = reservations_.reserve(seen_, job_ref_.key(), std::move(reservation), o.now);
  if (reserved)
    not_reserved_.clear();
  else if (reserved.error().code != ErrorCode::kConflict && not_reserved_.is_news(reserved.error().message))
    log_warning("failed to reserve slots", {{"job", job_ref_.key()}, {"error", reserved.error().message}});
  return reserved;
}

void JobShell::renew_reservation(const Work& work) {
  const std::string mine = job_ref_.key();
  const Time now = SystemClock{}.now();
  const auto kept = work.moving || work.starting ? reservations_.renew(mine, now) : reservations_.release(mine, now);
  if (!kept && not_reserved_.is_news(kept.error().message))
    log_warning("failed to write a reservation", {{"job", mine}, {"error", kept.error().message}});
}

// A budget that lets no pod of the job be evicted, or none; again now and then, since it may have been deleted.
void JobShell::protect(const crds::BspJob& job, bool on) {
  const auto now = std::chrono::steady_clock::now();
  if (!options_.pods.scheduled || (on == protected_ && (!on || now < protect_again_))) return;
  if (!on && job.status.phase == crds::JobPhase::kPending) return;  // there is none yet, or it may stay
  const bool begun = calls_->once("protect the pods", [&client = client_, job = job_ref_, on,
                                                       budget = make_disruption_budget(job)] {
    const auto done = on ? client.create(budget).transform([](const auto&) {})
                         : client.remove(job.own(kDisruptionBudget, kube::metadata_text(budget, "name")), "");
    // There already, or gone already.
    const ErrorCode code = done ? ErrorCode::kConflict : done.error().code;
    if (code != ErrorCode::kConflict && code != ErrorCode::kNotFound)
      log_warning("keeping a job's PodDisruptionBudget failed", {{"job", job.key()}, {"error", done.error().message}});
  });
  if (!begun) return;
  protected_ = on;
  protect_again_ = now + kProtectAgain;
}

void JobShell::do_work(const Observed& o, const Work& work) {
  for (const migrate::Action& action : work.actions) sidecars_->call(action);
  // Notices wait while ranks stand still: the machines have better to do.
  if (o.job.status.phase != crds::JobPhase::kMigrating || !stands_still(o)) {
    for (const Event& event : std::exchange(pending_events_, {})) events_.add(event);
    migrations_.write_pending();
  }
  renew_reservation(work);
  protect(o.job, work.protect);
  migrations_.forget(work.forget);
  pods_.create(o, work.create_pods, certificates_.signer());
  pods_.remove(o, work.delete_pods);
  if (work.remove_finalizer) remove_all(o.job);
  if (work.remove_job) remove_job();
}

void JobShell::remove_job() {
  calls_->once("delete the job", [&client = client_, job = job_ref_] {
    if (auto removed = client.remove(job.at, job.uid); !removed)
      log_warning("failed to delete a finished job", {{"job", job.key()}, {"error", removed.error().message}});
  });
}

// Before the job is removed, so is what belongs to it (a cluster's garbage collector would do the same, later).
void JobShell::remove_all(const crds::BspJob& job) {
  // A RankMigration that is still being created would be left behind. The last call reconciles the job again.
  if (calls_->any_under_way()) return;
  for (const kube::Kind& kind : {kRankMigration, kSecret}) {
    if (options_.collects_garbage) break;  // and listing Secrets would take permission to read all of them
    const auto found = client_.list(kind, job.metadata.name_space);
    if (!found) return log_warning("failed to list what belongs to a job", {{"error", found.error().message}});
    for (const kube::Object& object : *found) {
      // One made by hand has no owner.
      const bool for_us = kind == kRankMigration && owner_of(object).uid.empty() &&
                          text_at(part_at(object, "spec"), "job") == job.metadata.name;
      if (!job_ref_.owns(object) && !for_us) continue;
      const auto removed =
          client_.remove(job_ref_.own(kind, kube::metadata_text(object, "name")), kube::metadata_text(object, "uid"));
      if (!removed && removed.error().code != ErrorCode::kNotFound && removed.error().code != ErrorCode::kConflict)
        return log_warning("failed to delete what belongs to a job", {{"error", removed.error().message}});
    }
  }
  remove_finalizer();
}

void JobShell::remove_finalizer() {
  if (auto removed = kube::remove_finalizer(client_, job_ref_.at, job_ref_.uid, std::string(names::kFinalizer));
      !removed)
    log_warning("failed to remove the finalizer", {{"job", job_ref_.key()}, {"error", removed.error().message}});
}

}  // namespace bsp::reconcile
