// What the shell keeps of one job between two reconciles; all of it can be derived again from the objects.
//
//   read ─> keep up (follow.cc) ─> observe (observer.h) ─> advise (Advisor) ─> reconcile_job ─> Step ─> apply (apply.cc)
//     └──────────────────────────────── until nothing is to be stored ────────────────────────────────┘
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/core/backoff.h"
#include "operator/kinds.h"
#include "operator/reconcile/kernel/advisor.h"
#include "operator/reconcile/kernel/job_clocks.h"
#include "operator/reconcile/kernel/lost_pods.h"
#include "operator/reconcile/shell/certificates.h"
#include "operator/reconcile/shell/job_meter.h"
#include "operator/reconcile/shell/job_ref.h"
#include "operator/reconcile/shell/links.h"
#include "operator/reconcile/shell/log_tails.h"
#include "operator/reconcile/shell/migrations.h"
#include "operator/reconcile/shell/observer.h"
#include "operator/reconcile/shell/pod_keeper.h"
#include "operator/reconcile/shell/progress.h"
#include "operator/reconcile/shell/status_writer.h"

namespace bsp::reconcile {

// When a job is reconciled again at the latest.
inline constexpr std::chrono::milliseconds kRetry{100};
inline constexpr std::chrono::seconds kIdle{1};
inline constexpr std::chrono::seconds kQuiet{15};  // nothing is left to do for it

class JobShell {
 public:
  JobShell(const ShellParts& parts, const JobRef& job, std::function<void()> changed);

  // Does what is due, and returns after how long to do so again at the latest. Catches whatever is thrown meanwhile.
  Duration reconcile();
  [[nodiscard]] const std::string& uid() const { return job_ref_.uid; }

 private:
  Duration reconcile_until_stored();
  Duration rest_after(const Error& error);
  void set_stalled(bool on, const std::string& reason, const std::string& message);
  const crds::BspJob* read();  // from the cache; nullptr if it is gone or invalid
  void reject(const kube::Object& object, const Error& error);
  Result<void> prepare(const crds::BspJob& job);  // finalizer, CA, links
  void report_unprepared(const std::string& why);
  Result<void> isolate(const crds::BspJob& job);
  void keep_up(Cluster& cluster);
  void add_history(Observed& o);
  void ask_who_hears(const Observed& o);  // those that don't answer
  void gather(const Observed& o);         // asks the Set Managers for reports, when it is time
  // nullopt: it is stored, or another job was faster; read and decide again. Else when to try again.
  std::optional<Duration> apply(const Observed& o, const Advice& advice, const StatusChange& change);
  // When to reconcile again at the latest.
  Duration apply(const Observed& o, const Advice& advice, const Work& work);
  bool append_logs(const std::string& pod, std::string& message);  // false: they are still being read
  // Success: the slots are reserved. kConflict: another job has reserved since this one was observed.
  Result<void> reserve(const Observed& o, const StatusChange& change);
  void renew_reservation(const Work& work);
  void protect(const crds::BspJob& job, bool on);
  void keep(const Notices& notices);
  void do_work(const Observed& o, const Work& work);
  Duration rest(const Observed& o, const Work& work) const;
  void note_advice(const Observed& o, const Advice& advice);
  void remove_all(const crds::BspJob& job);
  void remove_job();
  void remove_finalizer();

  kube::Client& client_;
  kube::Cache& cache_;
  ReservationStore& reservations_;
  SidecarThread& sidecar_thread_;
  const ShellOptions& options_;
  const JobRef job_ref_;
  const JobObserver observer_;
  std::function<void()> changed_;
  const std::shared_ptr<JobCalls> calls_;
  const EventQueue events_;
  MigrationWriter migrations_;
  PodKeeper pods_;
  LogTails tails_;
  Advisor advisor_;
  StatusWriter status_;
  Certificates certificates_;
  std::unique_ptr<const crds::BspJob> job_;  // as last read; null while it rests
  std::unique_ptr<Sidecars> sidecars_;
  JobClocks clocks_;
  Progress progress_;
  LostPods lost_;
  std::vector<Event> pending_events_;  // of stored statuses
  Reservations seen_;                  // as the last step saw them
  std::chrono::steady_clock::time_point isolate_again_{}, protect_again_{};
  std::optional<bool> protected_;  // nullopt: not written by this operator yet
  JobMeter meter_{job_ref_.at.name_space, job_ref_.at.name};
  Trouble not_reserved_, not_prepared_, not_isolated_;
  Backoff rests_{std::chrono::milliseconds(200), std::chrono::seconds(30)};  // after failed reconciles
  std::chrono::steady_clock::time_point rests_until_{};
  std::chrono::steady_clock::time_point next_report_{};
};

}  // namespace bsp::reconcile
