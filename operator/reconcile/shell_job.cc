#include "operator/reconcile/shell_job.h"

#include <algorithm>
#include <format>

#include "base/core/log.h"
#include "operator/reconcile/base64.h"

namespace bsp::reconcile {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kIdle = 1s;
constexpr auto kRetry = 100ms;
constexpr auto kProgress = 250ms;  // between two writes of a status that only shows progress
constexpr auto kValidity = std::chrono::days(365);

kube::Key key(const kube::Kind& kind, const crds::BspJob& job, const std::string& name) {
  return {kind, job.metadata.name_space, name};
}

bool is_label(const json& object, std::string_view label, const std::string& value) {
  const json& metadata = object.at("metadata");
  return metadata.contains("labels") && metadata["labels"].value(std::string(label), "") == value;
}

bool has_ended(const kube::Object& pod) {
  const std::string phase = pod.contains("status") ? pod["status"].value("phase", "") : "";
  return phase == "Succeeded" || phase == "Failed";
}

bool is_missing(const Result<kube::Object>& r) { return !r && r.error().code == ErrorCode::kNotFound; }

}  // namespace

// Reading an object costs more than deciding on it, and most looks find it unchanged.
const crds::BspJob* JobShell::read(const std::string& name) {
  const auto stored = cache_.get(kBspJob, name);
  if (!stored) return nullptr;
  const std::string version = stored->at("metadata").value("resourceVersion", "");
  if (job_ && !version.empty() && job_->metadata.resource_version == version) return &*job_;
  auto job = crds::bsp_job_from_json(*stored);
  if (!job) {
    log_error("a BSPJob can't be read", {{"job", name}, {"error", job.error().message}});
    return nullptr;
  }
  job_ = std::move(*job);
  return &*job_;
}

Duration JobShell::reconcile(const std::string& name) {
  const crds::BspJob* job = read(name);
  if (!job) return kIdle;
  if (auto ready = prepare(*job); !ready) {
    log_warning("preparing a job failed", {{"job", name}, {"error", ready.error().message}});
    return kIdle;
  }
  // What is stored changes what is to be done; the bound only guards against a kernel that never rests.
  for (int round = 0; round < 16; ++round) {
    job = read(name);
    if (!job) return kIdle;
    const Observed o = observe(*job);
    gather(o);
    note_gains(o);
    Outcome out = reconcile_job(o, options_.limits, options_.job_limits);
    if (rescheduler_ && attempt_ == out.status.attempt && out.status.epoch) rescheduler_->store(out.status, o);
    if (!out.show_logs_of.empty() && options_.log_tail)
      if (const std::string tail = options_.log_tail(out.show_logs_of); !tail.empty())
        out.status.message += std::format("; the last lines of {}:\n{}", out.show_logs_of, tail);
    if (out.store_first) {
      if (!store(*job, out.status)) return kRetry;
      if (o.decided) decided_.reset();
      keep_for_later(out);
      continue;
    }
    keep_for_later(out);
    carry_out(o, out);
    const auto now = std::chrono::steady_clock::now();
    if (now >= stored_ + kProgress && !crds::is_finished(job->status.phase) && !stands_still(o)) {
      json before, after;
      to_json(before, job->status);
      to_json(after, out.status);
      if (before != after && !store(*job, out.status)) return kRetry;
    }
    const bool active = out.status.phase == crds::JobPhase::kMigrating || out.status.phase == crds::JobPhase::kStarting ||
                        out.status.phase == crds::JobPhase::kRestarting;
    if (active) return kRetry;
    if (out.status.phase != crds::JobPhase::kRunning) return kIdle;
    return std::max<Duration>(next_report_ - now, Duration(1ms));
  }
  return kRetry;
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
  const json& data = found->at("data");
  authority_ = net::PemPair{base64_decode(data.value("cert.pem", "")), base64_decode(data.value("key.pem", ""))};
  return {};
}

// --- Looking ---------------------------------------------------------------------------------------------
Observed JobShell::observe(crds::BspJob job) {
  Observed o;
  o.now = SystemClock{}.now();
  for (const kube::Object& node : cache_.list(kNode)) {
    auto facts = node_facts(node, job.spec.sets.label);
    if (!facts.set.empty()) o.nodes.push_back(std::move(facts));
  }
  std::map<std::string, std::string> reachable;
  for (const kube::Object& pod : cache_.list(kPod)) {
    if (is_label(pod, names::kLabelJob, job.metadata.name)) {
      PodFacts facts = pod_facts(pod);
      if (!facts.address.empty() && !facts.deleting) reachable[pod.at("metadata").at("name")] = facts.address;
      o.pods.emplace(pod.at("metadata").at("name"), std::move(facts));
    } else if (pod.contains("spec") && !has_ended(pod)) {
      // Whatever else runs on a node takes room there.
      const std::string node = pod["spec"].value("nodeName", "");
      for (auto& facts : o.nodes)
        if (facts.name == node) ++facts.taken;
    }
  }
  for (const kube::Object& object : cache_.list(kRankMigration)) {
    auto migration = crds::rank_migration_from_json(object);
    if (migration && migration->spec.job == job.metadata.name) o.migrations.push_back(std::move(*migration));
  }
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
    rescheduler_ = std::make_unique<Rescheduler>(job, job.status.epoch->sets.size());
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

// Reports come by way of the Set Managers: the lowest rank of each Set asks its members.
void JobShell::gather(const Observed& o) {
  const auto now = std::chrono::steady_clock::now();
  if (!rescheduler_ || !o.job.status.epoch || now < next_report_) return;
  if (o.job.status.phase != crds::JobPhase::kRunning && o.job.status.phase != crds::JobPhase::kMigrating) return;
  const double pace = o.superstep_seconds > 0 ? o.superstep_seconds : 0.1;
  next_report_ = now + std::chrono::duration_cast<std::chrono::milliseconds>(
                           std::chrono::duration<double>(std::clamp(pace, 0.05, 0.5)));
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

void JobShell::note_gains(const Observed& o) {
  if (!rescheduler_) return;
  for (const RealisedGain& gain : rescheduler_->realised(o.job.status, crds::is_finished(o.job.status.phase)))
    for (const crds::RankMigration& m : o.migrations)
      if (m.metadata.name == gain.migration) {
        crds::RankMigration with_gain = m;
        with_gain.status.realised_gain_seconds = gain.seconds;
        write_migration(with_gain);
      }
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
  for (const Event& event : std::exchange(untold_, {})) tell(o.job, event);
  for (const auto& [name, migration] : std::exchange(unwritten_, {})) write_migration(migration);
  for (const PodRequest& request : out.create_pods)
    if (auto created = create_pod(o.job, request); !created) {
      log_warning("making a pod failed", {{"job", o.job.metadata.name}, {"rank", request.rank}, {"error", created.error().message}});
      tell(o.job, {"Warning", "PodNotCreated", std::format("rank {}: {}", request.rank, created.error().message)});
    }
  for (const std::string& name : out.delete_pods) {
    if (auto removed = client_.remove(key(kPod, o.job, name)); !removed)
      log_warning("deleting a pod failed", {{"pod", name}, {"error", removed.error().message}});
    if (auto removed = client_.remove(key(kSecret, o.job, secret_name(name)));
        !removed && removed.error().code != ErrorCode::kNotFound)
      log_warning("deleting a Secret failed", {{"pod", name}, {"error", removed.error().message}});
    if (auto pod = client_.get(key(kPod, o.job, name))) cache_.put(*pod);
  }
  if (out.remove_finalizer) remove_all(o.job);
  if (out.remove_job)
    if (auto removed = client_.remove(key(kBspJob, o.job, o.job.metadata.name)); !removed)
      log_warning("removing a finished job failed", {{"job", o.job.metadata.name}, {"error", removed.error().message}});
}

Result<void> JobShell::create_pod(const crds::BspJob& job, const PodRequest& request) {
  const std::string name = pod_name(job.metadata.name, request.rank, request.generation);
  if (cache_.get(kPod, name)) return {};
  const json* app = crds::app_container(job.spec);
  check(app != nullptr, "a validated job has an app container");
  const std::string image = app->value("image", "");
  if (!images_.contains(image)) {
    BSP_TRY(ImageDefaults defaults, options_.image_defaults(image));
    images_[image] = std::move(defaults);
  }
  if (auto have = client_.get(key(kSecret, job, secret_name(name))); is_missing(have)) {
    const Time now = SystemClock{}.now();
    BSP_TRY(const net::PemPair pair, net::issue_certificate(*authority_, {.identity = name,
                                                                          .dns_names = {},
                                                                          .addresses = {},
                                                                          .not_before = now - 1min,
                                                                          .not_after = now + kValidity / 2}));
    BSP_TRY(const kube::Object secret, client_.create(make_secret(job, secret_name(name), authority_->certificate,
                                                                  pair.certificate, pair.key)));
  } else if (!have) {
    return std::unexpected(have.error());
  }
  auto created = client_.create(make_pod(job, request, images_[image]));
  if (!created && created.error().code != ErrorCode::kConflict) return std::unexpected(created.error());
  if (created) cache_.put(*created);
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

void JobShell::tell(const crds::BspJob& job, const Event& event) {
  const Time now = SystemClock{}.now();
  const json object = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata",
       {{"name", std::format("{}.{:x}{:02x}", job.metadata.name, now.time_since_epoch().count(), ++events_ & 0xff)},
        {"namespace", job.metadata.name_space},
        {"labels", {{std::string(names::kLabelJob), job.metadata.name}}}}},
      {"involvedObject",
       {{"apiVersion", names::kApiVersion},
        {"kind", names::kBspJobKind},
        {"name", job.metadata.name},
        {"namespace", job.metadata.name_space},
        {"uid", job.metadata.uid}}},
      {"type", event.type},
      {"reason", event.reason},
      {"message", event.message},
      {"source", {{"component", "bsp-operator"}}},
      {"firstTimestamp", to_rfc3339(now)},
      {"lastTimestamp", to_rfc3339(now)},
      {"count", 1}};
  log_info(event.message, {{"job", job.metadata.name}, {"reason", event.reason}});
  if (auto created = client_.create(object); !created)
    log_warning("telling an event failed", {{"error", created.error().message}});
}

// The job may go: what carries its label goes before it (a cluster's garbage collector would do the same, later).
void JobShell::remove_all(const crds::BspJob& job) {
  for (const kube::Kind& kind : {kRankMigration, kSecret}) {
    const auto found = client_.list(kind, job.metadata.name_space, {{std::string(names::kLabelJob), job.metadata.name}});
    if (!found) return log_warning("listing what belongs to a job failed", {{"error", found.error().message}});
    for (const kube::Object& object : *found)
      if (auto removed = client_.remove(key(kind, job, object.at("metadata").at("name")));
          !removed && removed.error().code != ErrorCode::kNotFound)
        return log_warning("deleting what belongs to a job failed", {{"error", removed.error().message}});
  }
  auto current = client_.get(key(kBspJob, job, job.metadata.name));
  if (!current) return;
  json& finalizers = (*current)["metadata"]["finalizers"];
  if (finalizers.is_array())
    for (std::size_t i = finalizers.size(); i-- > 0;)
      if (finalizers[i] == names::kFinalizer) finalizers.erase(i);
  if (auto updated = client_.update(*current); !updated && updated.error().code != ErrorCode::kNotFound)
    log_warning("removing the finalizer failed", {{"job", job.metadata.name}, {"error", updated.error().message}});
}

}  // namespace bsp::reconcile
