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
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operator/kube/cache.h"
#include "operator/kube/client.h"
#include "operator/kube/workqueue.h"
#include "operator/reconcile/capacity/stores/exchange_place.h"
#include "operator/reconcile/capacity/stores/store.h"
#include "operator/reconcile/kernel/job.h"
#include "operator/reconcile/kernel/network_policy.h"
#include "operator/reconcile/kernel/placement.h"
#include "operator/reconcile/shell/authority.h"
#include "operator/reconcile/shell/chores.h"
#include "operator/reconcile/shell/links.h"
#include "operator/reconcile/shell/metrics.h"
#include "operator/reconcile/shell/nodes.h"
#include "operator/reconcile/shell/objects.h"
#include "operator/reconcile/shell/waiting_jobs.h"

namespace bsp::reconcile {

class JobShell;

struct ShellOptions {
  std::string name_space = "default";  // "": all
  std::string network;                 // path of the network namespace from which pods are reached; "": our own
  PodOptions pods = {};
  nlohmann::json sidecar_resources = {};  // of jobs without spec.sidecar.resources; null: none
  bool collects_garbage = false;          // the cluster removes what belonged to a deleted job, by its owner
  // Jobs of one namespace reconciled at once; those with a wave under way count apart. Of all namespaces, kNamespaces times
  // as many.
  unsigned workers = 1;
  std::chrono::milliseconds progress{250};  // least time between two writes of a status that only shows progress
  std::chrono::milliseconds calls{0};       // least time between two reports of calls that move no rank
  // What an image runs if the template names no command; kNotFound with the remedy. Null: images can't be read, so
  // every template has to name its command. Both are called from all workers.
  std::function<Result<ImageDefaults>(const std::string& image)> image_defaults = {};
  // The last lines that the app container of a pod wrote; "" if there are none.
  std::function<std::string(const std::string& name_space, const std::string& pod)> log_tail = {};
  // Takes every rescheduling call as a line of operator/record, those of one job in order. Null: not recorded. Called from
  // all workers.
  std::function<void(const std::string& name_space, const std::string& job, const std::string& line)> record = {};
  migrate::Limits limits = {};
  JobLimits job_limits = {};
  // The object that holds the reservations of all waves. Operators whose jobs share nodes must name the same one.
  std::string reservations_name_space = {};  // "": name_space
  std::string reservations_name = "bsp-operator-reservations";
  // The Secret from which the jobs' certificates come, in the same namespace. Of two operators each has its own.
  std::string authority_name = "bsp-operator-authority";
  ExchangePlace exchange = {};  // instead of that object, where several operators each manage a namespace
  MoveCaps caps = {};
  std::optional<OperatorPods> isolate_from_all_but = {};  // nullopt: jobs get no NetworkPolicy
};

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
  void changed(const kube::Kind& kind, const kube::Object* before, const kube::Object* now);

  kube::Client& client_;
  const ShellOptions options_;
  kube::Workqueue queue_;  // of job_key()s; urgent where a wave is under way: ranks may stand still
  NodeViews node_views_;
  NodeUsage usage_;
  std::unique_ptr<ReservationStore> reservations_;
  WaitingJobs waiting_jobs_;
  Authority authority_;
  SidecarThread sidecar_thread_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;  // of the three below
  std::map<std::string, std::shared_ptr<JobShell>> jobs_;
  std::map<std::string, JobMetrics> job_metrics_;
  ReconcileMetrics reconciles_;
  std::unique_ptr<kube::Cache> cache_;  // its thread uses all above
  std::unique_ptr<Chores> chores_;      // and theirs
  std::vector<std::thread> workers_;
};

}  // namespace bsp::reconcile
