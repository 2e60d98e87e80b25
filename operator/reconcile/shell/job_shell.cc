#include "operator/reconcile/shell/job_shell.h"

#include <algorithm>
#include <format>
#include <utility>

#include "base/core/fault.h"
#include "base/core/guard.h"
#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/stored.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {
constexpr int kMostChanges = 16;
constexpr auto kIsolatedFor = 5min;
constexpr auto kIsolateAgain = 1s;
}  // namespace

JobShell::JobShell(const ShellParts& parts, const JobRef& job, std::function<void()> changed)
    : client_(parts.client),
      cache_(parts.cache),
      reservations_(parts.reservations),
      sidecar_thread_(parts.sidecar_thread),
      options_(parts.options),
      job_ref_(job),
      observer_(parts, job),
      changed_(std::move(changed)),
      calls_(std::make_shared<JobCalls>(parts.chores, job.at.name_space, job.key(), changed_)),
      events_(client_, job, calls_),
      migrations_(client_, cache_, job, calls_, events_),
      pods_(client_, cache_, options_, job, calls_, [this](const Event& event) { events_.add(event); }),
      tails_(options_.log_tail, job, calls_),
      advisor_({.calls = options_.calls, .records = options_.record != nullptr}),
      status_(client_, cache_, job, options_.progress),
      certificates_(parts.authority, cache_, job, events_) {}

// Parsing an object costs more than deciding on it, and most reconciles find it unchanged.
const crds::BspJob* JobShell::read() {
  const auto stored = cache_.get(job_ref_.at);
  if (!stored || kube::metadata_text(*stored, "uid") != job_ref_.uid) return nullptr;
  const std::string version = kube::metadata_text(*stored, "resourceVersion");
  if (job_ && !version.empty() && job_->metadata.resource_version == version) return job_.get();
  auto job = crds::bsp_job_from_json(*stored);
  if (job)
    if (auto good = crds::validate(job->spec).and_then([&] { return check_stored(*job); }); !good)
      job = std::unexpected(good.error());
  if (!job) {
    reject(*stored, job.error());
    return nullptr;
  }
  job_ = std::make_unique<const crds::BspJob>(std::move(*job));
  return job_.get();
}

// The API server has admitted it, but it is invalid: its status says why, once. Its pods are deleted, since the operator
// won't reconcile them.
void JobShell::reject(const kube::Object& object, const Error& error) {
  std::vector<kube::Object> pods;
  for (kube::Object& pod : cache_.find(kPod, kByJob, job_ref_.key()))
    if (job_ref_.owns(pod) && !kube::is_being_deleted(pod)) pods.push_back(std::move(pod));
  pods_.remove(std::move(pods));
  if (kube::is_being_deleted(object)) return remove_finalizer();
  Observed o;
  o.now = SystemClock{}.now();
  o.job.metadata.generation = count_at<std::int64_t>(part_at(object, "metadata"), "generation");
  const json& before = part_at(object, "status");
  crds::BspJobStatus status;
  status.phase = crds::JobPhase::kFailed;
  status.reason = "Invalid";
  status.message = error.message;
  status.completion_time = o.now;
  status.observed_generation = o.job.metadata.generation;
  if (text_at(before, "reason") == status.reason && text_at(before, "message") == status.message) return;
  refresh_status(o, status);
  kube::Object next = object;
  next["status"] = json();
  to_json(next["status"], status);
  log_info("a BSPJob is invalid", {{"job", job_ref_.key()}, {"error", error.message}});
  if (auto updated = client_.update_status(next)) cache_.put(*updated);
}

// A job that rests is parsed again when it is needed: of a thousand jobs most wait or have ended.
Duration JobShell::reconcile() {
  // A job whose reconciles fail must not keep a worker from others, whatever wakes it.
  if (const auto now = std::chrono::steady_clock::now(); now < rests_until_) return rests_until_ - now;
  if (const auto failed = calls_->take_error()) return rest_after(*failed);
  const auto next = guarded([&] { return reconcile_until_stored(); });
  if (!next) return rest_after(next.error());
  rests_.reset();
  if (job_ && is_on(job_->status, kStalled)) set_stalled(false, "Recovered", "the job is reconciled again");
  if (*next >= kIdle) job_.reset();
  return *next;
}

// Anything derived from the objects may be half done, so they are read again.
Duration JobShell::rest_after(const Error& error) {
  job_.reset();
  advisor_.forget();
  reconcile_retries.add({"error"});
  const Duration rest = rests_.next();
  rests_until_ = std::chrono::steady_clock::now() + rest;
  log_error("failed to reconcile a job", {{"job", job_ref_.key()}, {"error", error.message}});
  set_stalled(true, "InternalError", error.message + "; please report it with the operator's log");
  return rest;
}

// Edits the object as it is, since its status may be what can't be parsed.
void JobShell::set_stalled(bool on, const std::string& reason, const std::string& message) {
  bool news = false;
  const auto written = kube::modify_status(client_, job_ref_.at, [&](kube::Object& object) {
    if (kube::metadata_text(object, "uid") != job_ref_.uid) return false;
    if (!part_at(object, "status").is_object()) object["status"] = json::object();
    json& status = object["status"];
    if (!part_at(status, "conditions").is_array()) status["conditions"] = json::array();
    auto& conditions = status["conditions"].get_ref<json::array_t&>();
    const auto before = std::ranges::find(conditions, kStalled, [](const json& c) { return text_at(c, "type"); });
    const bool was = before != conditions.end();
    news = was != on || (was && text_at(*before, "message") != message);
    if (!news) return false;
    const std::string since = was ? text_at(*before, "lastTransitionTime") : to_rfc3339(SystemClock{}.now());
    if (was) conditions.erase(before);
    if (!on) return true;
    conditions.push_back({{"type", kStalled},
                          {"status", "True"},
                          {"lastTransitionTime", since},
                          {"reason", reason},
                          {"message", message}});
    return true;
  });
  if (!written) return log_warning("failed to write a job's condition", {{"error", written.error().message}});
  cache_.put(*written);
  if (news) events_.add({on ? "Warning" : "Normal", reason, message});
}

Duration JobShell::reconcile_until_stored() {
  const crds::BspJob* job = read();
  if (!job) return kQuiet;
  if (auto ready = prepare(*job); !ready) {
    report_unprepared(ready.error().message);
    return kIdle;
  }
  not_prepared_.clear();
  calls_->set_lane(job->status.phase == crds::JobPhase::kMigrating ? kube::Lane::kUrgent : kube::Lane::kOrdinary);
  // A stored change alters what is to be done, so everything is read and decided again until nothing is to be stored.
  // That ends: each change takes the job or its wave one step along its drawing (job.h, migrate/README.md), turns a
  // condition, or holds a decision, of which there is one in so many supersteps. The longest way, a whole wave whose work
  // is done already, has fewer changes than kMostChanges, which only keeps a kernel that never rests from holding a worker.
  for (int changes = 0; changes < kMostChanges; ++changes) {
    job = read();
    if (!job) return kQuiet;
    Cluster cluster = observer_.read(*job, pods_.being_made());
    keep_up(cluster);
    Observed o = observer_.observe(std::move(cluster), *sidecars_);
    add_history(o);
    gather(o);
    ask_who_hears(o);
    const Advice advice = advisor_.advance(o);
    note_advice(o, advice);
    const Step step = reconcile_job(o, advice, options_.limits, options_.job_limits);
    const StatusChange* const change = step.change();
    if (!change || change->reserve.empty())
      reservations_.reconciled(job_ref_.key());  // others need not wait for the rest
    if (!change) return apply(o, advice, step.work());
    if (const auto again = apply(o, advice, *change)) return *again;
  }
  return kRetry;
}

void JobShell::report_unprepared(const std::string& why) {
  if (!not_prepared_.is_news(why)) return;
  log_warning("failed to prepare a job", {{"job", job_ref_.key()}, {"error", why}});
  const crds::BspJob* job = read();  // it may have its finalizer since
  if (!job || job->status.phase != crds::JobPhase::kPending || job->metadata.deletion_timestamp != Time{}) return;
  crds::BspJobStatus status = job->status;
  status.reason = "NotPrepared";
  status.message = why;
  if (!status_.store(*job, status)) not_prepared_.clear();
}

// What a job needs before anything else: finalizer, NetworkPolicy, certificates.
Result<void> JobShell::prepare(const crds::BspJob& job) {
  if (job.metadata.deletion_timestamp == Time{} &&
      std::ranges::find(job.metadata.finalizers, names::kFinalizer) == job.metadata.finalizers.end()) {
    BSP_TRY(kube::Object current, client_.get(job_ref_.own(kBspJob, job.metadata.name)));
    current["metadata"]["finalizers"].push_back(names::kFinalizer);
    BSP_TRY(const kube::Object updated, client_.update(current));
    cache_.put(updated);
  }
  BSP_CHECK_OK(isolate(job));
  if (!sidecars_) {
    BSP_CHECK_OK(certificates_.begin(job));
    sidecars_ = std::make_unique<Sidecars>(
        sidecar_thread_, Sidecars::Options{.tls = certificates_.tls(), .changed = changed_, .job = job_ref_.key()});
  }
  certificates_.renew_if_due(job, sidecars_->take_untrusted(), pods_.maker());
  return {};
}

// Before there are pods, and again now and then in case it was deleted or changed. Its name holds the job's uid, so it is
// never read.
Result<void> JobShell::isolate(const crds::BspJob& job) {
  const auto now = std::chrono::steady_clock::now();
  if (!options_.isolate_from_all_but || job.metadata.deletion_timestamp != Time{} || now < isolate_again_) return {};
  const json policy = make_network_policy(job, *options_.isolate_from_all_but);
  auto stored = client_.update(policy);
  if (!stored && stored.error().code == ErrorCode::kNotFound) stored = client_.create(policy);
  isolate_again_ = now + (stored ? kIsolatedFor : kIsolateAgain);
  if (stored) return not_isolated_.clear(), Result<void>();
  Error error = stored.error().in("NetworkPolicy " + kube::metadata_text(policy, "name"));
  if (job.status.phase == crds::JobPhase::kPending) return std::unexpected(std::move(error));
  if (not_isolated_.is_news(error.message))  // its pods run: that is worth more
    log_warning("failed to write a job's NetworkPolicy", {{"job", job_ref_.key()}, {"error", error.message}});
  return {};
}

}  // namespace bsp::reconcile
