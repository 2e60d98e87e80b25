#include "operator/reconcile/shell/strays.h"

#include <algorithm>
#include <format>
#include <utility>

#include "base/core/log.h"
#include "operator/kinds.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/waves.h"
#include "operator/reconcile/shell/objects.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;

namespace {

std::string name_space_of(const std::string& job_key) { return job_key.substr(0, job_key.find('/')); }
std::string name_of(const std::string& job_key) { return job_key.substr(job_key.find('/') + 1); }

std::string no_such_job(const std::string& job_key) {
  return std::format(
      "spec.job: there is no BSPJob {} in namespace {}, and one that is made later is not moved by this RankMigration: "
      "make it again, with the right name or once its job exists",
      name_of(job_key), name_space_of(job_key));
}

void write(kube::Client& client, kube::Cache& cache, const crds::RankMigration& migration) {
  kube::Object next;
  to_json(next, migration);
  if (const auto updated = client.update_status(next)) cache.put(*updated);
}

}  // namespace

void StrayMigrations::forget(const std::string& job_key) {
  const std::lock_guard lock(mutex_);
  const auto of_job = by_job_.find(job_key);
  if (of_job == by_job_.end()) return;
  const auto of_space = by_space_.find(name_space_of(job_key));
  if (of_space != by_space_.end()) {
    for (const Stray& stray : of_job->second.strays) of_space->second.erase(stray);
    if (of_space->second.empty()) by_space_.erase(of_space);
  }
  by_job_.erase(of_job);
}

std::pair<std::vector<StrayMigrations::Stray>, SteadyTime> StrayMigrations::note(const std::string& job_key,
                                                                                 std::vector<Stray> strays) {
  const std::lock_guard lock(mutex_);
  OfJob& of_job = by_job_[job_key];
  if (of_job.since == SteadyTime{}) of_job.since = std::chrono::steady_clock::now();
  std::set<Stray>& of_space = by_space_[name_space_of(job_key)];
  for (const Stray& stray : of_job.strays) of_space.erase(stray);
  of_space.insert(strays.begin(), strays.end());
  of_job.strays = std::move(strays);
  std::vector<Stray> go;
  for (auto oldest = of_space.begin(); of_space.size() - go.size() > kMost && go.size() < kDeletedAtOnce; ++oldest)
    go.push_back(*oldest);
  return {std::move(go), of_job.since};
}

// The cache may lack a job that exists, for as long as its watch lags.
bool StrayMigrations::is_absent(const std::string& job_key) {
  const auto job = client_.get({kBspJob, name_space_of(job_key), name_of(job_key)});
  return !job && job.error().code == ErrorCode::kNotFound;
}

void StrayMigrations::remove(kube::Cache& cache, const std::vector<Stray>& strays) {
  std::map<std::string, bool> absent;  // by job_key
  for (const auto& [created, name, uid, job_key] : strays) {
    if (!absent.contains(job_key)) absent[job_key] = is_absent(job_key);
    if (!absent.at(job_key)) continue;
    const kube::Key key{kRankMigration, name_space_of(job_key), name};
    const auto removed = client_.remove(key, uid);
    if (removed || removed.error().code == ErrorCode::kNotFound)
      cache.drop(key);
    else
      log_warning("failed to delete a RankMigration whose job does not exist",
                  {{"migration", name}, {"job", job_key}, {"error", removed.error().message}});
  }
}

Duration StrayMigrations::answer(kube::Cache& cache, const std::string& job_key) {
  std::map<std::string, crds::RankMigration> migrations;  // by name
  std::vector<Stray> strays;
  for (const kube::Object& object : cache.find(kRankMigration, kByJob, job_key)) {
    if (kube::is_being_deleted(object)) continue;
    const auto migration = crds::rank_migration_from_json(object);
    const crds::ObjectMeta metadata = migration ? migration->metadata : crds::ObjectMeta();
    strays.emplace_back(metadata.creation_timestamp, kube::metadata_text(object, "name"),
                        kube::metadata_text(object, "uid"), job_key);
    if (migration && !crds::is_finished(migration->status.phase)) migrations.emplace(metadata.name, *migration);
  }
  if (strays.empty()) return forget(job_key), Duration{};
  const auto [go, since] = note(job_key, std::move(strays));
  remove(cache, go);
  if (go.size() == kDeletedAtOnce) return 100ms;
  for (const Stray& gone : go) migrations.erase(std::get<1>(gone));
  const Duration left = since + wait_ - std::chrono::steady_clock::now();
  const bool over = left <= Duration{} && !migrations.empty() && is_absent(job_key);
  bool waits = false;
  for (const auto& [name, migration] : migrations) {
    if (migration.status.phase != crds::MigrationPhase::kPending) {  // one that was under way has failed with its job
      write(client_, cache, refused(migration, {name, "JobGone", "the job was deleted"}, SystemClock{}.now()));
    } else if (over) {
      write(client_, cache, refused(migration, {name, "NoSuchJob", no_such_job(job_key)}, SystemClock{}.now()));
    } else {
      waits = true;
      crds::RankMigration next = migration;
      next.status.observed_generation = migration.metadata.generation;
      next.status.reason = "NoSuchJob";
      next.status.message = no_such_job(job_key);
      if (migration.status.message != next.status.message) write(client_, cache, next);
    }
  }
  return waits ? std::max<Duration>(left, 1s) : Duration{};
}

}  // namespace bsp::reconcile
