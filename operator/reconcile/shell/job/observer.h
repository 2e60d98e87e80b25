// Observing: reads what caches, stores and sidecars have of a job, and puts it into values. Changes nothing and decides nothing.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operator/reconcile/shell/job/job_ref.h"
#include "operator/reconcile/shell/job/shell_parts.h"

namespace bsp::reconcile {

// The objects of a job and of the cluster around it, read at one moment.
struct Cluster {
  crds::BspJob job;  // with the defaults of this operator
  Time now{};
  SteadyTime steady{};
  std::shared_ptr<const SeenNodes> nodes;
  std::set<std::string> gone_nodes;  // of the job's ranks: there are no such Nodes any more
  Reservations reservations;
  std::set<std::string> being_made;  // read before `pods`, so that a pod is in one of the two
  std::map<std::string, PodFacts> pods;
  std::map<Seat, std::string> reachable;  // whose sidecar is to be linked: its address
  std::vector<crds::RankMigration> migrations, older_migrations;
};

class JobObserver {
 public:
  JobObserver(const ShellParts& parts, const JobRef& job);

  [[nodiscard]] Cluster read(crds::BspJob job, std::set<std::string> being_made) const;
  [[nodiscard]] std::map<Seat, std::string> reachable() const;  // as in Cluster, of a job that isn't known
  [[nodiscard]] Observed observe(Cluster cluster, const Sidecars& sidecars) const;

 private:
  void read_pods(Cluster& cluster) const;
  void read_migrations(Cluster& cluster) const;
  [[nodiscard]] std::vector<observe::NodeFacts> nodes_of(const Cluster& cluster) const;
  [[nodiscard]] std::map<std::string, std::int64_t> free_cpu(const Cluster& cluster) const;
  [[nodiscard]] StartQueue queue_of(const Cluster& cluster) const;

  const kube::Cache& cache_;
  NodeViews& nodes_;
  const NodeUsage& usage_;
  ReservationStore& reservations_;
  const WaitingJobs& waiting_jobs_;
  const ShellOptions& options_;
  const JobRef job_ref_;
};

}  // namespace bsp::reconcile
