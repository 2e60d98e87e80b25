// The part of the operator that does I/O: it watches objects, asks the kernels and applies their steps.
//
//   watch ─> Cache ─> queue of jobs ─> Observed ─> kernel ─┬─> status stored (before anything that follows from it)
//   sidecars' links ────┘                (a worker)        ├─> pods, Secrets, RankMigrations, events
//                                                          └─> verbs to sidecars
//
// One worker at a time reconciles a job, whenever something of it has changed or its timer is due. It runs with any
// kube::Client. Everything that must survive is in the objects, so it may be killed anywhere.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "operator/kube/cache.h"
#include "operator/kube/client.h"
#include "operator/kube/workqueue.h"
#include "operator/reconcile/capacity/stores/store.h"
#include "operator/reconcile/shell/authority.h"
#include "operator/reconcile/shell/call_pool.h"
#include "operator/reconcile/shell/holds.h"
#include "operator/reconcile/shell/links/links.h"
#include "operator/reconcile/shell/metrics.h"
#include "operator/reconcile/shell/node_benchmarks.h"
#include "operator/reconcile/shell/nodes.h"
#include "operator/reconcile/shell/objects.h"
#include "operator/reconcile/shell/shell_options.h"
#include "operator/reconcile/shell/strays.h"
#include "operator/reconcile/shell/waiting_jobs.h"

namespace bsp::reconcile {

class JobShell;

class Shell {
 public:
  // The calls of so many namespaces may hang before jobs of another one wait; idle workers cost little.
  static constexpr unsigned kNamespaces = 4;

  Shell(kube::Client& client, ShellOptions options);
  ~Shell();  // ends the workers; pods go on
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // All objects have been seen once, and jobs are reconciled.
  [[nodiscard]] bool ready() const { return cache_->filled(); }
  [[nodiscard]] ShellMetrics metrics();

 private:
  void work(kube::Lane lane);
  Duration reconcile(const std::string& job, bool& gone);
  [[nodiscard]] bool has_jobs(const std::string& name_space);
  void changed(const kube::Kind& kind, const kube::Object* before, const kube::Object* now);

  kube::Client& client_;
  const ShellOptions options_;
  kube::Workqueue queue_;  // of job_key()s; urgent where a wave is under way: ranks may stand still
  struct {
    NodeViews views;
    NodeBenchmarks benchmarks;
  } nodes_;
  NodeUsage usage_;
  std::unique_ptr<ReservationStore> reservations_;
  WaitingJobs waiting_jobs_;
  Authority authority_;
  struct {
    StrayMigrations strays;
    NamespaceHolds holds;
  } spaces_;  // what concerns a namespace, not one job
  SidecarThread sidecar_thread_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;  // of the three below
  std::map<std::string, std::shared_ptr<JobShell>> jobs_;
  std::map<std::string, JobMetrics> job_metrics_;
  ReconcileMetrics reconciles_;
  std::unique_ptr<kube::Cache> cache_;   // its thread uses all above
  std::unique_ptr<CallPool> call_pool_;  // and theirs
  std::vector<std::thread> workers_;
};

}  // namespace bsp::reconcile
