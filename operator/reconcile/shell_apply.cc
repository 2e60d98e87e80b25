// Doing: the status stored, and then what follows from it.
#include <algorithm>
#include <format>

#include "base/core/log.h"
#include "operator/kube/api.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/move_memory.h"
#include "operator/reconcile/shell_job.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {
constexpr auto kFirstRefusal = 100ms, kLongestRefusal = 5000ms;
}  // namespace

// What differs from the stored object, if that is the one that was decided on: a decision is hundreds of KiB, and most writes
// change none.
Result<kube::Object> JobShell::write_status(const crds::BspJob& job, const crds::BspJobStatus& status) {
  crds::BspJob next = job;
  next.status = status;
  json object;
  to_json(object, next);
  const auto stored = cache_.get(at_);
  if (stored && kube::metadata_text(*stored, "resourceVersion") == job.metadata.resource_version) {
    const json& before = part_at(*stored, "status");
    if (auto changes = kube::merge_patch(before.is_object() ? before : json::object(), object["status"])) {
      if (changes->empty()) return *stored;
      return client_.patch_status(
          at_,
          {{"metadata", {{"resourceVersion", job.metadata.resource_version}, {"uid", uid_}}}, {"status", *changes}});
    }
  }
  return client_.update_status(object);
}

bool JobShell::store(const crds::BspJob& job, const crds::BspJobStatus& status) {
  const auto began = std::chrono::steady_clock::now();
  if (began < store_again_) return false;
  auto updated = write_status(job, status);
  if (!updated) {
    if (updated.error().code != ErrorCode::kConflict && updated.error().code != ErrorCode::kNotFound) {
      // Whoever refuses it now does so the next moment.
      const auto pause = kube::backoff(refusals_++, kFirstRefusal, kLongestRefusal);
      store_again_ = std::chrono::steady_clock::now() + pause;
      log_warning("storing a status failed", {{"job", job.metadata.name}, {"error", updated.error().message}});
    }
    // Somebody changed the object meanwhile: decide again on what it is now.
    if (auto fresh = client_.get(own(kBspJob, job.metadata.name))) cache_.put(*fresh);
    return false;
  }
  refusals_ = 0;
  if (kube::metadata_text(*updated, "resourceVersion") != job.metadata.resource_version)
    stored_bytes_ = updated->dump().size();
  cache_.put(*updated);
  stored_ = std::chrono::steady_clock::now();
  return true;
}

// What only tells of a status that is stored waits until all that follows from it has been asked of the sidecars: every
// write takes a while, and ranks may stand still.
void JobShell::keep_for_later(const Outcome& out) {
  std::ranges::copy(out.events, std::back_inserter(untold_));
  for (const auto& migration : out.migrations) unwritten_.insert_or_assign(migration.metadata.name, migration);
}

// Before the wave is stored that the seats are for: whoever decides from now on sees them taken.
bool JobShell::book(const Observed& o, const Outcome& out, Duration& pause) {
  Booking booking{.uid = uid_,
                  .wave = out.status.wave,
                  .each = requests_of(part_at(o.job.spec.pod_template, "spec")),
                  .checkpoint = MoveRoom(o).of_largest().checkpoint,
                  .seats = out.book,
                  .until = o.now + kBookingKept};
  const auto booked = bookings_.book(seen_, job_key(at_.name_space, at_.name), std::move(booking), o.now);
  if (booked) return not_booked_.clear(), true;
  if (booked.error().code == ErrorCode::kConflict) return false;
  pause = 1s;
  if (not_booked_.is_news(booked.error().message))
    log_warning("no rank can move", {{"job", job_key(at_.name_space, at_.name)}, {"error", booked.error().message}});
  return false;
}

void JobShell::keep_booked(const Outcome& out) {
  const std::string mine = job_key(at_.name_space, at_.name);
  const Time now = SystemClock{}.now();
  const auto kept = out.moving ? bookings_.renew(mine, now) : bookings_.release(mine, now);
  if (!kept && not_booked_.is_news(kept.error().message))
    log_warning("booked room can't be written", {{"job", mine}, {"error", kept.error().message}});
}

void JobShell::carry_out(const Observed& o, const Outcome& out) {
  for (const Verb& verb : out.verbs) sidecars_->call(verb);
  // What only tells waits while ranks stand still: the next look of the wave comes after it, and a write takes as long as
  // somebody's webhook likes.
  if (o.job.status.phase != crds::JobPhase::kMigrating || !stands_still(o)) {
    for (const Event& event : std::exchange(untold_, {})) events_.tell(o.job, event);
    for (const auto& [name, migration] : std::exchange(unwritten_, {})) write_migration(migration);
  }
  keep_booked(out);
  forget(out.forget);
  create_pods(o, out.create_pods);
  delete_pods(o, out.delete_pods);
  if (out.remove_finalizer) remove_all(o.job);
  if (out.remove_job)
    if (auto removed = client_.remove(own(kBspJob, o.job.metadata.name), uid_); !removed)
      log_warning("removing a finished job failed", {{"job", o.job.metadata.name}, {"error", removed.error().message}});
}

void JobShell::forget(const std::vector<Forgotten>& migrations) {
  for (const auto& [name, uid] : migrations) {
    const kube::Key key = own(kRankMigration, name);
    auto removed = client_.remove(key, uid);
    if (!removed && removed.error().code != ErrorCode::kNotFound && removed.error().code != ErrorCode::kConflict)
      return log_warning("deleting an old RankMigration failed",
                         {{"migration", name}, {"error", removed.error().message}});
    cache_.drop(key);  // one that took its name comes again with the watch
  }
}

bool JobShell::is_of_wave(const kube::Object& object, const crds::RankMigration& migration) const {
  const auto there = crds::rank_migration_from_json(object);
  return is_ours(object) && there && there->spec.job == migration.spec.job && there->spec.rank == migration.spec.rank &&
         there->spec.wave == migration.spec.wave;
}

void JobShell::tell_name_taken(const kube::Key& key) {
  if (!name_taken_.is_news(key.name)) return;
  events_.tell(named(), {"Warning", "NameTaken",
                         std::format("{} {} is there and was not made by the operator for this job; delete it: kubectl "
                                     "delete {} {} -n {}",
                                     key.kind.kind, key.name, key.kind.kind, key.name, key.name_space)});
}

// Creates it, or writes its status; what is lost here is made again by the next look at the wave.
void JobShell::write_migration(const crds::RankMigration& migration) {
  const kube::Key key = own(kRankMigration, migration.metadata.name);
  json object;
  to_json(object, migration);
  if (migration.metadata.uid.empty()) {
    auto created = client_.create(object);
    if (!created && created.error().code == ErrorCode::kConflict) {
      created = client_.get(key);
      // Our own, whose first answer was lost; another one is not ours to write to.
      if (created && !is_of_wave(*created, migration)) return tell_name_taken(key);
    }
    if (!created)
      return log_warning("creating a RankMigration failed",
                         {{"migration", migration.metadata.name}, {"error", created.error().message}});
    object["metadata"] = part_at(*created, "metadata");
  }
  if (auto updated = client_.update_status(object)) {
    cache_.put(*updated);
  } else {
    log_warning("storing a RankMigration's status failed",
                {{"migration", migration.metadata.name}, {"error", updated.error().message}});
    if (auto fresh = client_.get(own(kRankMigration, migration.metadata.name))) cache_.put(*fresh);
  }
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
      if (!is_ours(object) && !for_us) continue;
      const auto removed =
          client_.remove(own(kind, kube::metadata_text(object, "name")), kube::metadata_text(object, "uid"));
      if (!removed && removed.error().code != ErrorCode::kNotFound && removed.error().code != ErrorCode::kConflict)
        return log_warning("deleting what belongs to a job failed", {{"error", removed.error().message}});
    }
  }
  remove_finalizer();
}

void JobShell::remove_finalizer() {
  if (auto removed = kube::remove_finalizer(client_, at_, uid_, std::string(names::kFinalizer)); !removed)
    log_warning("removing the finalizer failed",
                {{"job", job_key(at_.name_space, at_.name)}, {"error", removed.error().message}});
}

}  // namespace bsp::reconcile
