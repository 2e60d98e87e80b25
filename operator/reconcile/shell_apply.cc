// Doing: the status stored, and then what follows from it.
#include <algorithm>
#include <format>

#include "base/core/log.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/shell_job.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {
constexpr auto kFirstPause = 500ms;  // after a pod could not be made; doubled each time
constexpr auto kLongestPause = 15s;
}  // namespace

bool JobShell::store(const crds::BspJob& job, const crds::BspJobStatus& status) {
  crds::BspJob next = job;
  next.status = status;
  json object;
  to_json(object, next);
  auto updated = client_.update_status(object);
  if (!updated) {
    if (updated.error().code != ErrorCode::kConflict && updated.error().code != ErrorCode::kNotFound)
      log_warning("storing a status failed", {{"job", job.metadata.name}, {"error", updated.error().message}});
    // Somebody changed the object meanwhile: decide again on what it is now.
    if (auto fresh = client_.get(own(kBspJob, job.metadata.name))) cache_.put(*fresh);
    return false;
  }
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
                  .each = requests_of(o.job.spec.pod_template.value("spec", json::object())),
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
  for (const Event& event : std::exchange(untold_, {})) events_.tell(o.job, event);
  for (const auto& [name, migration] : std::exchange(unwritten_, {})) write_migration(migration);
  keep_booked(out);
  create_pods(o, out.create_pods);
  for (const std::string& name : out.delete_pods) {
    if (auto removed = client_.remove(own(kPod, name)); !removed)
      log_warning("deleting a pod failed", {{"pod", name}, {"error", removed.error().message}});
    if (auto removed = client_.remove(own(kSecret, secret_name(name)));
        !removed && removed.error().code != ErrorCode::kNotFound)
      log_warning("deleting a Secret failed", {{"pod", name}, {"error", removed.error().message}});
    if (auto pod = client_.get(own(kPod, name)))
      cache_.put(*pod);
    else if (pod.error().code == ErrorCode::kNotFound)
      cache_.drop(own(kPod, name));
  }
  if (out.remove_finalizer) remove_all(o.job);
  if (out.remove_job)
    if (auto removed = client_.remove(own(kBspJob, o.job.metadata.name)); !removed)
      log_warning("removing a finished job failed", {{"job", o.job.metadata.name}, {"error", removed.error().message}});
}

// What is refused is tried again after a while, and told when the reason changes.
void JobShell::create_pods(const Observed& o, const std::vector<PodRequest>& requests) {
  std::erase_if(not_created_, [&](const auto& entry) {
    return std::ranges::none_of(requests, [&](const PodRequest& r) {
      return pod_name(o.job.metadata.name, r.rank, r.generation) == entry.first;
    });
  });
  for (const PodRequest& request : requests) {
    const std::string name = pod_name(o.job.metadata.name, request.rank, request.generation);
    const auto now = std::chrono::steady_clock::now();
    const auto before = not_created_.find(name);
    if (before != not_created_.end() && now < before->second.again) continue;
    const auto created = create_pod(o.job, request);
    if (created) {
      if (before != not_created_.end()) not_created_.erase(before);
      continue;
    }
    const Error& error = created.error();
    const bool news = before == not_created_.end() || before->second.error.message != error.message;
    const Duration pause = news ? kFirstPause : std::min<Duration>(before->second.pause * 2, kLongestPause);
    not_created_.insert_or_assign(name, NotCreated{error, now + pause, pause});
    if (!news) continue;
    // What the API server refuses for the template's sake is its author's to put right, and told there.
    log(error.code == ErrorCode::kInvalid || error.code == ErrorCode::kRefused ? LogLevel::kInfo : LogLevel::kWarning,
        "making a pod failed",
        {{"job", job_key(at_.name_space, at_.name)}, {"rank", request.rank}, {"error", error.message}});
    events_.tell(o.job, {"Warning", "PodNotCreated", std::format("rank {}: {}", request.rank, error.message)});
    if (error.code == ErrorCode::kUnavailable) return;  // the next one would fare no better
  }
}

Result<void> JobShell::create_pod(const crds::BspJob& job, const PodRequest& request) {
  const std::string name = pod_name(job.metadata.name, request.rank, request.generation);
  if (cache_.get(own(kPod, name))) return {};
  const json* app = crds::app_container(job.spec);
  check(app != nullptr, "a validated job has an app container");
  const std::string image = app->value("image", "");
  if (!images_.contains(image) && options_.image_defaults) {
    BSP_TRY(ImageDefaults defaults, options_.image_defaults(image));
    images_[image] = std::move(defaults);
  }
  BSP_CHECK_OK(create_secret(job, name));
  auto created = client_.create(make_pod(job, request, images_[image], options_.pods));
  if (!created && created.error().code == ErrorCode::kConflict) {
    created = client_.get(own(kPod, name));
    if (created && !is_ours(*created))
      return fail(ErrorCode::kUnavailable, std::format("a pod {} is there that is not this job's; delete it", name),
                  true);
  }
  if (!created) {
    Error error = created.error();
    if (error.message.contains("violates PodSecurity"))
      error.message += std::format(
          "; the program's container needs more (see the chart's notes), so let the namespace admit it: kubectl "
          "label namespace {} pod-security.kubernetes.io/enforce=privileged --overwrite",
          at_.name_space);
    return std::unexpected(std::move(error));
  }
  cache_.put(*created);
  return {};
}

// Creates it, or writes its status; what is lost here is made again by the next look at the wave.
void JobShell::write_migration(const crds::RankMigration& migration) {
  json object;
  to_json(object, migration);
  if (migration.metadata.uid.empty()) {
    auto created = client_.create(object);
    if (!created && created.error().code != ErrorCode::kConflict)
      return log_warning("creating a RankMigration failed",
                         {{"migration", migration.metadata.name}, {"error", created.error().message}});
    if (!created) created = client_.get(own(kRankMigration, migration.metadata.name));
    if (!created) return;
    object["metadata"] = created->at("metadata");
  }
  if (auto updated = client_.update_status(object)) {
    cache_.put(*updated);
  } else {
    log_warning("storing a RankMigration's status failed",
                {{"migration", migration.metadata.name}, {"error", updated.error().message}});
    if (auto fresh = client_.get(own(kRankMigration, migration.metadata.name))) cache_.put(*fresh);
  }
}

// The job may go: what carries its label goes before it (a cluster's garbage collector would do the same, later).
void JobShell::remove_all(const crds::BspJob& job) {
  for (const kube::Kind& kind : {kRankMigration, kSecret}) {
    if (options_.collects_garbage) break;  // and listing Secrets would take a right to see all of them
    const auto found =
        client_.list(kind, job.metadata.name_space, {{std::string(names::kLabelJob), job.metadata.name}});
    if (!found) return log_warning("listing what belongs to a job failed", {{"error", found.error().message}});
    for (const kube::Object& object : *found)
      if (auto removed = client_.remove(own(kind, object.at("metadata").at("name")));
          !removed && removed.error().code != ErrorCode::kNotFound)
        return log_warning("deleting what belongs to a job failed", {{"error", removed.error().message}});
  }
  remove_finalizer();
}

void JobShell::remove_finalizer() {
  if (auto removed = kube::remove_finalizer(client_, at_, std::string(names::kFinalizer)); !removed)
    log_warning("removing the finalizer failed",
                {{"job", job_key(at_.name_space, at_.name)}, {"error", removed.error().message}});
}

}  // namespace bsp::reconcile
