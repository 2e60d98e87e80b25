#include "operator/reconcile/shell/job/migrations.h"

#include <format>
#include <utility>

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

std::string call_of(const std::string& migration) { return "write RankMigration " + migration; }

// Whether two say the same; each decision has a time of its own.
std::string without_times(const crds::RankMigration& migration) {
  crds::RankMigration m = migration;
  m.status.start_time = m.status.completion_time = {};
  for (crds::PhaseTime& phase : m.status.phase_times) phase.time = {};
  json object;
  to_json(object, m);
  return object.dump();
}

// Whether both are of the same move.
bool is_of_wave(const JobRef& job, const kube::Object& object, const crds::RankMigration& migration) {
  const auto there = crds::rank_migration_from_json(object);
  return job.owns(object) && there && there->spec.job == migration.spec.job &&
         there->spec.rank == migration.spec.rank && there->spec.wave == migration.spec.wave;
}

Event name_taken(const kube::Key& key) {
  return {"Warning", "NameTaken",
          std::format("{} {} exists and was not made by the operator for this job; delete it: kubectl delete {} {} "
                      "-n {}",
                      key.kind.kind, key.name, key.kind.kind, key.name, key.name_space)};
}

// One made by hand goes when its job goes.
void adopt(kube::Client& client, const JobRef& job, const kube::Key& key, const std::string& uid, json& object) {
  const auto adopted = kube::modify(client, key, [&](kube::Object& there) {
    if (kube::metadata_text(there, "uid") != uid || !part_at(part_at(there, "metadata"), "ownerReferences").empty())
      return false;
    there["metadata"]["ownerReferences"] = owner_reference(job.named());
    return true;
  });
  if (adopted)
    object["metadata"] = part_at(*adopted, "metadata");
  else
    log_warning("failed to make a RankMigration part of its job",
                {{"job", job.key()}, {"migration", key.name}, {"error", adopted.error().message}});
}

// Creates it, or writes its status; what is lost here is made again by the next reconcile of the wave.
void write_migration(kube::Client& client, kube::Cache& cache, const JobRef& job, const EventQueue& events,
                     const crds::RankMigration& migration) {
  const kube::Key key = job.own(kRankMigration, migration.metadata.name);
  json object;
  to_json(object, migration);
  if (migration.metadata.uid.empty()) {
    auto created = client.create(object);
    if (!created && created.error().code == ErrorCode::kConflict) {
      created = client.get(key);
      // Our own, whose first answer was lost; another one is not ours to write to.
      if (created && !is_of_wave(job, *created, migration)) return events.add(name_taken(key));
    }
    if (!created)
      return log_warning("failed to create a RankMigration",
                         {{"migration", key.name}, {"error", created.error().message}});
    object["metadata"] = part_at(*created, "metadata");
  } else if (migration.metadata.owner_references.empty()) {
    adopt(client, job, key, migration.metadata.uid, object);
  }
  if (auto updated = client.update_status(object)) {
    cache.put(*updated);
  } else {
    if (updated.error().code != ErrorCode::kConflict)  // our own last write may have been newer than the cache
      log_warning("failed to store a RankMigration's status",
                  {{"migration", key.name}, {"error", updated.error().message}});
    if (auto fresh = client.get(key)) cache.put(*fresh);
  }
}

}  // namespace

void MigrationWriter::add(const crds::RankMigration& migration) {
  const std::string& name = migration.metadata.name;
  if (calls_->under_way(call_of(name)) && last_[name] == without_times(migration)) return;
  pending_.insert_or_assign(name, migration);
}

void MigrationWriter::write_pending() {
  std::erase_if(pending_, [&](const auto& entry) {
    const auto& [name, migration] = entry;
    const bool begun =
        calls_->once(call_of(name), [&client = client_, &cache = cache_, job = job_, events = events_, migration] {
          write_migration(client, cache, job, events, migration);
        });
    if (begun) last_[name] = without_times(migration);
    return begun;
  });
}

void MigrationWriter::remove(const std::vector<MigrationDeletion>& migrations) {
  for (const auto& [name, uid] : migrations) {
    last_.erase(name);
    calls_->once("delete RankMigration " + name, [&client = client_, &cache = cache_, job = job_, name, uid] {
      const kube::Key key = job.own(kRankMigration, name);
      auto removed = client.remove(key, uid);
      if (!removed && removed.error().code != ErrorCode::kNotFound && removed.error().code != ErrorCode::kConflict)
        return log_warning("failed to delete an old RankMigration",
                           {{"migration", name}, {"error", removed.error().message}});
      cache.drop(key);  // one that took its name comes again with the watch
    });
  }
}

}  // namespace bsp::reconcile
