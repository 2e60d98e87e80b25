// Follows a job from one observation to the next: the links go to the pods that are there, the scheduler gets its reports,
// and what only a sequence of observations shows (durations, progress, refusals) is added to the observation.
#pragma once

#include "operator/reconcile/kernel/job_clocks.h"
#include "operator/reconcile/shell/job/observer.h"
#include "operator/reconcile/shell/job/pod_group_keeper.h"
#include "operator/reconcile/shell/job/pod_keeper.h"
#include "operator/reconcile/shell/job/progress.h"
#include "operator/reconcile/shell/job/report_rounds.h"
#include "operator/reconcile/shell/pod_ends.h"

namespace bsp::reconcile {

class Follower {
 public:
  Follower(const JobParts& parts, PodKeeper& pods, const PodGroupKeeper& pod_group, Advisor& advisor)
      : job_ref_(parts.job),
        sidecar_thread_(parts.shell.sidecar_thread),
        benchmarks_(parts.shell.benchmarks),
        pods_(pods),
        pod_group_(pod_group),
        advisor_(advisor),
        observer_(parts.shell, parts.job),
        reports_(advisor),
        ends_(parts) {}
  ~Follower() { lose_sight(); }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  Observed observe(const crds::BspJob& job, Sidecars& sidecars);
  // For what the next observations are to show: supersteps, and who hears a sidecar that does not answer.
  void ask(const Observed& o, Sidecars& sidecars);
  // Lets the sidecars hear this operator, of a job that can't be observed. Not once it has been: a pod that was taken for lost must
  // not hear it again.
  void greet(Sidecars& sidecars) const;
  // Of a job that isn't observed for now, or never again: it tells no other job how many sidecars answer this operator.
  void lose_sight() { sidecar_thread_.note_hearing(job_ref_.uid, {}); }
  [[nodiscard]] Duration until_next_reports() const { return reports_.until_next(); }

 private:
  void keep_up(Cluster& cluster, Sidecars& sidecars);
  void add_history(Observed& o);

  const JobRef job_ref_;
  SidecarThread& sidecar_thread_;
  NodeBenchmarks& benchmarks_;
  PodKeeper& pods_;
  const PodGroupKeeper& pod_group_;
  const Advisor& advisor_;
  const JobObserver observer_;
  ReportRounds reports_;
  JobClocks clocks_;
  Progress progress_;
  PodEnds ends_;
  bool has_observed_ = false;
};

}  // namespace bsp::reconcile
