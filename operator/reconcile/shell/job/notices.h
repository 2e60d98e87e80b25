// What people read of a job: events, RankMigrations, recorded calls, and their explanations in the log.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/reconcile/shell/job/job_parts.h"
#include "operator/reconcile/shell/job/migrations.h"

namespace bsp::reconcile {

class JobNotices {
 public:
  explicit JobNotices(const JobParts& parts)
      : job_ref_(parts.job), record_(parts.shell.options.record), events_(parts.events), migrations_(parts) {}

  // Kept until write(): every write takes time, and ranks may stand still.
  void add(const Notices& notices);
  // The calls that are not reported, and the gains that have just become known.
  void add(const Observed& o, const Advice& advice);
  void add_reported(const Decided& call);
  void write();
  void delete_migrations(const std::vector<MigrationDeletion>& migrations) { migrations_.remove(migrations); }

 private:
  void record(const std::string& line) const { record_(job_ref_.at.name_space, job_ref_.at.name, line); }

  const JobRef job_ref_;
  const std::function<void(const std::string& name_space, const std::string& job, const std::string& line)> record_;
  const EventQueue events_;
  MigrationWriter migrations_;
  std::vector<Event> pending_events_;
};

}  // namespace bsp::reconcile
