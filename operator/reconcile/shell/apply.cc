// Doing: the status stored, and then what follows from it.
#include <algorithm>
#include <format>

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/move_memory.h"
#include "operator/reconcile/shell/job_shell.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;
using nlohmann::json;

// What only tells of a status that is stored waits until all that follows from it has been asked of the sidecars: every
// write takes a while, and ranks may stand still.
void JobShell::keep_for_later(const Outcome& out) {
  std::ranges::copy(out.events, std::back_inserter(untold_));
  for (const auto& migration : out.migrations) migrations_.add(migration);
}

// Before the wave is stored that the slots are for: whoever decides from now on sees them taken.
bool JobShell::reserve(const Observed& o, const Outcome& out, Duration& pause) {
  Reservation reservation{.uid = job_ref_.uid,
                          .wave = out.status.wave,
                          .each = requests_of(part_at(o.job.spec.pod_template, "spec")),
                          .checkpoint = MoveCapacity(o).of_largest().checkpoint,
                          .slots = out.reserve,
                          .until = o.now + kReservationKept};
  const auto reserved = reservations_.reserve(seen_, job_ref_.key(), std::move(reservation), o.now);
  if (reserved) return not_reserved_.clear(), true;
  if (reserved.error().code == ErrorCode::kConflict) return false;
  pause = 1s;
  if (not_reserved_.is_news(reserved.error().message))
    log_warning("no rank can move", {{"job", job_ref_.key()}, {"error", reserved.error().message}});
  return false;
}

void JobShell::keep_reserved(const Outcome& out) {
  const std::string mine = job_ref_.key();
  const Time now = SystemClock{}.now();
  const auto kept = out.moving ? reservations_.renew(mine, now) : reservations_.release(mine, now);
  if (!kept && not_reserved_.is_news(kept.error().message))
    log_warning("booked room can't be written", {{"job", mine}, {"error", kept.error().message}});
}

void JobShell::carry_out(const Observed& o, const Outcome& out) {
  for (const Verb& verb : out.verbs) sidecars_->call(verb);
  // What only tells waits while ranks stand still: the machines have better to do.
  if (o.job.status.phase != crds::JobPhase::kMigrating || !stands_still(o)) {
    for (const Event& event : std::exchange(untold_, {})) events_.add(event);
    migrations_.write_pending();
  }
  keep_reserved(out);
  migrations_.forget(out.forget);
  pods_.create(o, out.create_pods, certificates_.signer());
  pods_.remove(o, out.delete_pods);
  if (out.remove_finalizer) remove_all(o.job);
  if (out.remove_job) remove_job();
}

void JobShell::remove_job() {
  calls_->once("delete the job", [&client = client_, job = job_ref_] {
    if (auto removed = client.remove(job.at, job.uid); !removed)
      log_warning("removing a finished job failed", {{"job", job.key()}, {"error", removed.error().message}});
  });
}

// The job may go: what belongs to it goes before it (a cluster's garbage collector would do the same, later).
void JobShell::remove_all(const crds::BspJob& job) {
  for (const kube::Kind& kind : {kRankMigration, kSecret}) {
    if (options_.collects_garbage) break;  // and listing Secrets would take a right to see all of them
    const auto found = client_.list(kind, job.metadata.name_space);
    if (!found) return log_warning("listing what belongs to a job failed", {{"error", found.error().message}});
    for (const kube::Object& object : *found) {
      // One made by hand has no owner.
      const bool for_us = kind == kRankMigration && owner_of(object).uid.empty() &&
                          text_at(part_at(object, "spec"), "job") == job.metadata.name;
      if (!job_ref_.owns(object) && !for_us) continue;
      const auto removed =
          client_.remove(job_ref_.own(kind, kube::metadata_text(object, "name")), kube::metadata_text(object, "uid"));
      if (!removed && removed.error().code != ErrorCode::kNotFound && removed.error().code != ErrorCode::kConflict)
        return log_warning("deleting what belongs to a job failed", {{"error", removed.error().message}});
    }
  }
  remove_finalizer();
}

void JobShell::remove_finalizer() {
  if (auto removed = kube::remove_finalizer(client_, job_ref_.at, job_ref_.uid, std::string(names::kFinalizer));
      !removed)
    log_warning("removing the finalizer failed", {{"job", job_ref_.key()}, {"error", removed.error().message}});
}

}  // namespace bsp::reconcile
