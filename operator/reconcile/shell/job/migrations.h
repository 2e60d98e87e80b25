// A job's RankMigrations, written and deleted off the worker.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/shell/job/job_parts.h"

namespace bsp::reconcile {

class MigrationWriter {
 public:
  explicit MigrationWriter(const JobParts& parts)
      : client_(parts.shell.client),
        cache_(parts.shell.cache),
        job_(parts.job),
        calls_(parts.calls),
        events_(parts.events) {}

  // To be created, or their status written, at the next write_pending(); the newest of each counts.
  void add(const crds::RankMigration& migration);
  void write_pending();
  void remove(const std::vector<MigrationDeletion>& migrations);

 private:
  kube::Client& client_;
  kube::Cache& cache_;
  const JobRef job_;
  const std::shared_ptr<JobCalls> calls_;
  const EventQueue events_;
  std::map<std::string, crds::RankMigration> pending_;  // by name
  std::map<std::string, std::string> last_;             // by name: what was written last, but for its times
};

}  // namespace bsp::reconcile
