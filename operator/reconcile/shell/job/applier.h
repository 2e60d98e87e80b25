// Applies a step: a status is stored, or what follows from the stored one is done.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "operator/reconcile/kernel/rescheduling/advisor.h"
#include "operator/reconcile/shell/job/eviction_guard.h"
#include "operator/reconcile/shell/job/job_meter.h"
#include "operator/reconcile/shell/job/log_tails.h"
#include "operator/reconcile/shell/job/notices.h"
#include "operator/reconcile/shell/job/pod_group_keeper.h"
#include "operator/reconcile/shell/job/pod_keeper.h"
#include "operator/reconcile/shell/job/preparation.h"
#include "operator/reconcile/shell/job/removal.h"
#include "operator/reconcile/shell/job/reservation_keeper.h"
#include "operator/reconcile/shell/job/set_remover.h"
#include "operator/reconcile/shell/job/status_writer.h"
#include "operator/reconcile/shell/job/workloads.h"

namespace bsp::reconcile {

// When a job is reconciled again at the latest.
inline constexpr std::chrono::milliseconds kRetry{100};
inline constexpr std::chrono::seconds kIdle{1};

class Applier {
 public:
  Applier(const JobParts& parts, StatusWriter& status, PodKeeper& pods, PodGroupKeeper& pod_group, Advisor& advisor,
          const JobRemoval& removal, SetRemover& remover)
      : status_(status),
        pods_(pods),
        pod_group_(pod_group),
        advisor_(advisor),
        removal_(removal),
        remover_(remover),
        notices_(parts),
        reservation_(parts),
        evictions_(parts),
        workload_(parts),
        tails_(parts),
        meter_(parts.job.at.name_space, parts.job.at.name) {}

  // nullopt: it is stored, or another job was faster; observe and decide again. Else when to try again.
  std::optional<Duration> apply(const Observed& o, const Advice& advice, const StatusChange& change);
  void apply(const Observed& o, const Advice& advice, const Work& work, const Prepared& prepared);

 private:
  bool append_logs(const Seat& seat, std::string& message);  // false: they are still being read
  void show_progress(const Observed& o, const Advice& advice, const crds::BspJobStatus& progress);

  StatusWriter& status_;
  PodKeeper& pods_;
  PodGroupKeeper& pod_group_;
  Advisor& advisor_;
  const JobRemoval& removal_;
  SetRemover& remover_;
  JobNotices notices_;
  ReservationKeeper reservation_;
  EvictionGuard evictions_;
  WorkloadWriter workload_;
  LogTails tails_;
  JobMeter meter_;
};

}  // namespace bsp::reconcile
