#include "operator/reconcile/shell_job.h"

#include <algorithm>
#include <format>

#include "base/core/base64.h"
#include "base/core/fault.h"
#include "base/core/log.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/status.h"

namespace bsp::reconcile {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kIdle = 1s;
constexpr auto kQuiet = 15s;       // of a job for which nothing is left to do
constexpr auto kRetry = 100ms;
constexpr auto kFirstPause = 500ms;  // after a pod could not be made; doubled each time
constexpr auto kValidity = std::chrono::days(365);

kube::Key key(const kube::Kind& kind, const crds::BspJob& job, const std::string& name) {
  return {kind, job.metadata.name_space, name};
}

// Of this very job, and not of one of the same name that is being collected.
bool belongs_to(const kube::Object& object, const crds::BspJob& job) {
  for (const json& owner : object.at("metadata").value("ownerReferences", json::array()))
    if (owner.value("uid", "") == job.metadata.uid) return true;
  return false;
}

bool has_ended(const kube::Object& pod) {
  const std::string phase = pod.contains("status") ? pod["status"].value("phase", "") : "";
  return phase == "Succeeded" || phase == "Failed";
}

bool is_missing(const Result<kube::Object>& r) { return !r && r.error().code == ErrorCode::kNotFound; }

}  // namespace

// Reading an object costs more than deciding on it, and most looks find it unchanged.
const crds::BspJob* JobShell::read() {
  const auto stored = cache_.get(at_);
  if (!stored || stored->at("metadata").value("uid", "") != uid_) return nullptr;
  const std::string version = stored->at("metadata").value("resourceVersion", "");
  if (job_ && !version.empty() && job_->metadata.resource_version == version) return &*job_;
  auto job = crds::bsp_job_from_json(*stored);
  if (job)
    if (auto good = crds::validate(job->spec); !good) job = std::unexpected(good.error());
  if (!job) {
    refuse(*stored, job.error());
    return nullptr;
  }
  job_ = std::move(*job);
  return &*job_;
}

// What an API server lets pass and we can't carry out: its status says why, once.
void JobShell::refuse(const kube::Object& object, const Error& error) {
  if (kube::is_being_deleted(object)) return remove_finalizer();
  Observed o;
  o.now = SystemClock{}.now();
  o.job.metadata.generation = object.at("metadata").value("generation", std::int64_t{0});
  const json before = object.value("status", json::object());
  crds::BspJobStatus status;
  status.phase = crds::JobPhase::kFailed;
  status.reason = "Invalid";
  status.message = error.message;
  status.completion_time = o.now;
  status.observed_generation = o.job.metadata.generation;
  if (before.value("reason", "") == status.reason && before.value("message", "") == status.message) return;
  refresh_status(o, status);
  kube::Object next = object;
  to_json(next["status"], status);
  log_info("a BSPJob can't be carried out", {{"job", job_key(at_.name_space, at_.name)}, {"error", error.message}});
  if (auto updated = client_.update_status(next)) cache_.put(*updated);
}

Duration JobShell::reconcile() {
  const crds::BspJob* job = read();
  if (!job) return kQuiet;
  if (auto ready = prepare(*job); !ready) {
    log_warning("preparing a job failed",
                {{"job", job_key(at_.name_space, at_.name)}, {"error", ready.error().message}});
    return kIdle;
  }
  // What is stored changes what is to be done; the bound only guards against a kernel that never rests.
  for (int round = 0; round < 16; ++round) {
    job = read();
    if (!job) return kQuiet;
    const Observed o = observe(*job);
    gather(o);
    const bool gained = note_gains(o);
    Outcome out = reconcile_job(o, options_.limits, options_.job_limits);
    if (rescheduler_ && attempt_ == out.status.attempt && out.status.epoch) rescheduler_->store(out.status, o);
    if (!out.show_logs_of.empty() && options_.log_tail)
      if (const std::string tail = options_.log_tail(at_.name_space, out.show_logs_of); !tail.empty())
        out.status.message += std::format("; the last lines of {}:\n{}", out.show_logs_of, tail);
    if (out.store_first) {
      if (!store(*job, out.status)) return kRetry;
      // After it is stored: a call that nobody carries out, because this operator ends here, is made again by the next one.
      if (o.decided && o.decided->record) options_.record(at_.name_space, at_.name, *o.decided->record);
      if (o.decided) decided_.reset();
      for (const Event& event : out.events) fault_point("operator." + event.reason);  // stored; nothing of it done yet
      keep_for_later(out);
      continue;
    }
    keep_for_later(out);
    carry_out(o, out);
    const auto now = std::chrono::steady_clock::now();
    if (gained || (now >= stored_ + options_.progress && !crds::is_finished(job->status.phase) && !stands_still(o))) {
      json before, after;
      to_json(before, job->status);
      to_json(after, out.status);
      if (before != after && !store(*job, out.status)) return kRetry;
    }
    const bool active = out.status.phase == crds::JobPhase::kMigrating || out.status.phase == crds::JobPhase::kStarting ||
                        out.status.phase == crds::JobPhase::kRestarting;
    if (active) return kRetry;
    if (out.status.phase != crds::JobPhase::kRunning) return rest(o, out);
    return std::max<Duration>(next_report_ - now, Duration(1ms));
  }
  return kRetry;
}

// A job that has ended or is suspended wakes us by a change; only its time to live is our own.
Duration JobShell::rest(const Observed& o, const Outcome& out) const {
  const bool over = crds::is_finished(out.status.phase);
  if (!over && out.status.phase != crds::JobPhase::kSuspended) return kIdle;
  if (!out.delete_pods.empty() || !out.migrations.empty() || out.remove_job || out.remove_finalizer) return kIdle;
  Duration next = kQuiet;
  if (const auto ttl = o.job.spec.run_policy.ttl_seconds_after_finished; over && ttl)
    next = std::min<Duration>(next, out.status.completion_time + std::chrono::seconds(*ttl) - o.now + kRetry);
  return std::max<Duration>(next, kRetry);
}

// --- What must be there before anything of a job can be done ------------------------------------------------
Result<void> JobShell::prepare(const crds::BspJob& job) {
  if (job.metadata.deletion_timestamp == Time{} &&
      std::ranges::find(job.metadata.finalizers, names::kFinalizer) == job.metadata.finalizers.end()) {
    BSP_TRY(kube::Object current, client_.get(key(kBspJob, job, job.metadata.name)));
    current["metadata"]["finalizers"].push_back(names::kFinalizer);
    BSP_TRY(const kube::Object updated, client_.update(current));
    cache_.put(updated);
  }
  if (sidecars_) return {};
  BSP_CHECK_OK(load_authority(job));
  const Time now = SystemClock{}.now();
  BSP_TRY(const net::PemPair own, net::issue_certificate(*authority_, {.identity = std::string(names::kOperatorIdentity),
                                                                       .dns_names = {},
                                                                       .addresses = {},
                                                                       .not_before = now,
                                                                       .not_after = now + kValidity / 2}));
  BSP_TRY(auto tls, net::TlsContext::create({authority_->certificate, own.certificate, own.key}));
  sidecars_ = std::make_unique<Sidecars>(
      Sidecars::Options{.tls = std::move(tls), .network = options_.network, .changed = changed_});
  return {};
}

// The job's CA lives in a Secret, so that the certificates of running pods stay good for a fresh operator.
Result<void> JobShell::load_authority(const crds::BspJob& job) {
  const std::string name = job.metadata.name + "-ca";
  auto found = client_.get(key(kSecret, job, name));
  if (is_missing(found)) {
    const Time now = SystemClock{}.now();
    BSP_TRY(const net::PemPair ca, net::create_ca(std::format("bspjob-{}", job.metadata.uid), now - 5min, now + kValidity));
    found = client_.create(make_secret(job, name, ca.certificate, ca.certificate, ca.key));
    if (!found && found.error().code == ErrorCode::kConflict) found = client_.get(key(kSecret, job, name));
  }
  if (!found) return std::unexpected(found.error());
  if (!belongs_to(*found, job))
    return fail(ErrorCode::kUnavailable,
                std::format("Secret {} belongs to something else, or to a former job of this name that is still being "
                            "removed; delete it, or give the job another name", name), true);
  net::PemPair pair;
  for (const auto& [part, text] : {std::pair{"cert.pem", &pair.certificate}, {"key.pem", &pair.key}}) {
    auto decoded = base64_decode(found->value("data", json::object()).value(part, ""));
    if (!decoded) return std::unexpected(decoded.error().in(std::format("Secret {}: data.{}", name, part)));
    *text = std::move(*decoded);
  }
  authority_ = std::move(pair);
  return {};
}

// --- Looking ---------------------------------------------------------------------------------------------
Observed JobShell::observe(crds::BspJob job) {
  Observed o;
  o.now = SystemClock{}.now();
  const std::vector<kube::Object> nodes = cache_.list(kNode);
  job.spec.sets.label = set_label(job.spec.sets.label, nodes);
  o.nodes = nodes_for(job, nodes);
  o.images_unreadable = !options_.image_defaults;
  for (const auto& [pod, why] : not_created_) o.not_created.emplace(pod, why.error);
  std::map<std::string, std::string> reachable;
  const std::string mine = job_key(at_.name_space, at_.name);
  for (const kube::Object& pod : cache_.find(kPod, kByJob, mine)) {
    PodFacts facts = pod_facts(pod);
    facts.abandoned = facts.deleting && !facts.node.empty() && !std::ranges::any_of(nodes, [&](const kube::Object& node) {
      return node.at("metadata").value("name", "") == facts.node && is_ready(node);
    });
    const bool over = crds::is_finished(job.status.phase) && has_ended(pod);
    if (!facts.address.empty() && !facts.deleting && !over) reachable[pod.at("metadata").at("name")] = facts.address;
    o.pods.emplace(pod.at("metadata").at("name"), std::move(facts));
  }
  for (const kube::Object& object : cache_.find(kRankMigration, kByJob, mine))
    if (auto migration = crds::rank_migration_from_json(object)) o.migrations.push_back(std::move(*migration));
  sidecars_->track(reachable);
  sidecars_->begin_wave(job.status.wave);
  o.sidecars = sidecars_->facts();
  o.round_trip_seconds = sidecars_->round_trip_seconds();

  const bool runs = job.status.phase == crds::JobPhase::kRunning || job.status.phase == crds::JobPhase::kMigrating;
  if (!runs || !job.status.epoch) {
    if (!crds::is_finished(job.status.phase)) rescheduler_.reset();
    o.job = std::move(job);
    return o;
  }
  if (!rescheduler_ || attempt_ != job.status.attempt) {
    rescheduler_ = std::make_unique<Rescheduler>(job, job.status.epoch->sets.size(), options_.record != nullptr);
    attempt_ = job.status.attempt;
    decided_.reset();
  }
  for (const wire::RankReport& report : sidecars_->take_reports()) {
    if (rescheduler_->add(report) && report.rank < job.status.ranks.size())
      sidecars_->note_completed(job.status.ranks[report.rank].pod, report.completed);
  }
  o.superstep_seconds = rescheduler_->superstep_seconds();
  o.job = std::move(job);
  if (!decided_) {
    decided_ = rescheduler_->advance(o);
    if (decided_)
      for (const std::string& line : decided_->text) log_debug(line);
  }
  o.decided = decided_;
  return o;
}

std::vector<observe::NodeFacts> JobShell::nodes_for(const crds::BspJob& job, const std::vector<kube::Object>& all) const {
  const std::string mine = job_key(at_.name_space, at_.name);
  const Resources rank = requests_of(job.spec.pod_template.value("spec", json::object()));
  std::vector<observe::NodeFacts> nodes;
  for (const kube::Object& node : all) {
    auto facts = node_facts(node, job.spec.sets.label);
    if (facts.set.empty()) continue;
    // Whatever else runs on a node takes room there.
    const Resources others = usage_.of_others(facts.name, mine);
    if (options_.pods.scheduled) {
      Resources room = allocatable_of(node);
      room -= others;
      const std::uint32_t slots = slots_of(room, rank);
      facts.slots = std::max(slots, 1u);  // 0 would mean that there is no limit
      facts.cordoned = slots == 0 || !takes_pods_of(node, job.spec.pod_template);
    } else {
      facts.taken = static_cast<std::uint32_t>(others.pods);
    }
    nodes.push_back(std::move(facts));
  }
  return nodes;
}

// Reports come by way of the Set Managers: the lowest rank of each Set asks its members.
void JobShell::gather(const Observed& o) {
  const auto now = std::chrono::steady_clock::now();
  if (!rescheduler_ || !o.job.status.epoch || now < next_report_) return;
  if (o.job.status.phase != crds::JobPhase::kRunning && o.job.status.phase != crds::JobPhase::kMigrating) return;
  // Once a superstep if they are long; of short ones several at once, since each report is a look at everything. The ring
  // holds 256 of them.
  const double pace = o.superstep_seconds > 0 ? o.superstep_seconds : 0.1;
  const double least = std::clamp(100 * pace, 0.05, 0.25);
  next_report_ = now + std::chrono::duration_cast<std::chrono::milliseconds>(
                           std::chrono::duration<double>(std::clamp(pace, least, 0.5)));
  if (stands_still(o)) return;  // nothing is completed meanwhile, and the pods' share of a core is wanted for the move
  std::map<std::uint32_t, Sidecars::SetRequest> requests;  // by Set
  for (const wire::Member& member : o.job.status.epoch->members) {
    Sidecars::SetRequest& request = requests[member.set];
    if (request.manager.empty()) request = {member.pod, json::array()};
    request.members.push_back({{"rank", member.rank},
                               {"address", member.address},
                               {"pod", member.pod},
                               {"since", rescheduler_->collector().since(member.rank)}});
  }
  for (const auto& [set, request] : requests) sidecars_->ask_reports(request);
}

bool JobShell::note_gains(const Observed& o) {
  if (!rescheduler_) return false;
  const auto gains = rescheduler_->realised(o.job.status, crds::is_finished(o.job.status.phase));
  for (const RealisedGain& gain : gains)
    for (const crds::RankMigration& m : o.migrations)
      if (m.metadata.name == gain.migration) {
        crds::RankMigration with_gain = m;
        with_gain.status.realised_gain_seconds = gain.seconds;
        write_migration(with_gain);
      }
  return !gains.empty();
}

// --- Doing -----------------------------------------------------------------------------------------------
bool JobShell::store(const crds::BspJob& job, const crds::BspJobStatus& status) {
  crds::BspJob next = job;
  next.status = status;
  json object;
  to_json(object, next);
  auto updated = client_.update_status(object);
  if (!updated) {
    if (updated.error().code != ErrorCode::kConflict)
      log_warning("storing a status failed", {{"job", job.metadata.name}, {"error", updated.error().message}});
    // Somebody changed the object meanwhile: decide again on what it is now.
    if (auto fresh = client_.get(key(kBspJob, job, job.metadata.name))) cache_.put(*fresh);
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

void JobShell::carry_out(const Observed& o, const Outcome& out) {
  for (const Verb& verb : out.verbs) sidecars_->call(verb);
  for (const Event& event : std::exchange(untold_, {})) events_.tell(o.job, event);
  for (const auto& [name, migration] : std::exchange(unwritten_, {})) write_migration(migration);
  create_pods(o, out.create_pods);
  for (const std::string& name : out.delete_pods) {
    if (auto removed = client_.remove(key(kPod, o.job, name)); !removed)
      log_warning("deleting a pod failed", {{"pod", name}, {"error", removed.error().message}});
    if (auto removed = client_.remove(key(kSecret, o.job, secret_name(name)));
        !removed && removed.error().code != ErrorCode::kNotFound)
      log_warning("deleting a Secret failed", {{"pod", name}, {"error", removed.error().message}});
    if (auto pod = client_.get(key(kPod, o.job, name))) cache_.put(*pod);
    else if (is_missing(pod)) cache_.drop(key(kPod, o.job, name));
  }
  if (out.remove_finalizer) remove_all(o.job);
  if (out.remove_job)
    if (auto removed = client_.remove(key(kBspJob, o.job, o.job.metadata.name)); !removed)
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
    const Duration pause = news ? kFirstPause : std::min<Duration>(before->second.pause * 2, kQuiet);
    not_created_.insert_or_assign(name, NotCreated{error, now + pause, pause});
    if (!news) continue;
    log_warning("making a pod failed",
                {{"job", job_key(at_.name_space, at_.name)}, {"rank", request.rank}, {"error", error.message}});
    events_.tell(o.job, {"Warning", "PodNotCreated", std::format("rank {}: {}", request.rank, error.message)});
    if (error.code == ErrorCode::kUnavailable) return;  // the next one would fare no better
  }
}

Result<void> JobShell::create_pod(const crds::BspJob& job, const PodRequest& request) {
  const std::string name = pod_name(job.metadata.name, request.rank, request.generation);
  if (cache_.get(key(kPod, job, name))) return {};
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
    created = client_.get(key(kPod, job, name));
    if (created && !belongs_to(*created, job))
      return fail(ErrorCode::kUnavailable, std::format("a pod {} is there that is not this job's; delete it", name), true);
  }
  if (!created) return std::unexpected(created.error());
  cache_.put(*created);
  return {};
}

Result<void> JobShell::create_secret(const crds::BspJob& job, const std::string& pod) {
  const Time now = SystemClock{}.now();
  BSP_TRY(const net::PemPair pair, net::issue_certificate(*authority_, {.identity = pod,
                                                                        .dns_names = {},
                                                                        .addresses = {},
                                                                        .not_before = now - 1min,
                                                                        .not_after = now + kValidity / 2}));
  const std::string name = secret_name(pod);
  auto secret = client_.create(make_secret(job, name, authority_->certificate, pair.certificate, pair.key));
  if (secret) return {};
  if (secret.error().code != ErrorCode::kConflict) return std::unexpected(secret.error());
  // Made before an operator died: good, if it is this job's.
  BSP_TRY(const kube::Object have, client_.get(key(kSecret, job, name)));
  if (belongs_to(have, job)) return {};
  return fail(ErrorCode::kUnavailable, std::format("Secret {} is in the way; delete it", name), true);
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
    if (!created) created = client_.get({kRankMigration, migration.metadata.name_space, migration.metadata.name});
    if (!created) return;
    object["metadata"] = created->at("metadata");
  }
  if (auto updated = client_.update_status(object)) {
    cache_.put(*updated);
  } else {
    log_warning("storing a RankMigration's status failed",
                {{"migration", migration.metadata.name}, {"error", updated.error().message}});
    if (auto fresh = client_.get({kRankMigration, migration.metadata.name_space, migration.metadata.name})) cache_.put(*fresh);
  }
}

// The job may go: what carries its label goes before it (a cluster's garbage collector would do the same, later).
void JobShell::remove_all(const crds::BspJob& job) {
  for (const kube::Kind& kind : {kRankMigration, kSecret}) {
    if (options_.collects_garbage) break;  // and listing Secrets would take a right to see all of them
    const auto found = client_.list(kind, job.metadata.name_space, {{std::string(names::kLabelJob), job.metadata.name}});
    if (!found) return log_warning("listing what belongs to a job failed", {{"error", found.error().message}});
    for (const kube::Object& object : *found)
      if (auto removed = client_.remove(key(kind, job, object.at("metadata").at("name")));
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
