// A job's RankMigrations, written and deleted off the worker, as are events: the worker waits for neither.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/shell/chores.h"
#include "operator/reconcile/shell/events.h"
#include "operator/reconcile/shell/job_ref.h"

namespace bsp::reconcile {

// Events of one job, one after the other. Copies are the same queue; it may be used from calls.
class EventQueue {
 public:
  EventQueue(kube::Client& client, JobRef job, std::shared_ptr<JobCalls> calls)
      : job_(std::move(job)), calls_(std::move(calls)), recorder_(std::make_shared<EventRecorder>(client)) {}
  void add(const Event& event) const;

 private:
  const JobRef job_;
  const std::shared_ptr<JobCalls> calls_;
  const std::shared_ptr<EventRecorder> recorder_;  // used by one call at a time
};

class MigrationWriter {
 public:
  MigrationWriter(kube::Client& client, kube::Cache& cache, JobRef job, std::shared_ptr<JobCalls> calls,
                  EventQueue events)
      : client_(client), cache_(cache), job_(std::move(job)), calls_(std::move(calls)), events_(std::move(events)) {}

  // To be created, or their status written, at the next write_pending(); the newest of each counts.
  void add(const crds::RankMigration& migration);
  void write_pending();
  void forget(const std::vector<Forgotten>& migrations);

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
