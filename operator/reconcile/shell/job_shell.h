// What the shell keeps of one job between two reconciles; all of it can be made anew from the objects.
//
//   observe (observe.cc) ─> advise (Advisor) ─> reconcile_job (kernel) ─┬─> store the status, and begin again
//                                                                       └─> do what follows from it (apply.cc)
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
#include "operator/reconcile/shell/job_ref.h"
#include "operator/reconcile/shell/links.h"
#include "operator/reconcile/shell/log_tails.h"
#include "operator/reconcile/shell/migrations.h"
#include "operator/reconcile/shell/nodes.h"
#include "operator/reconcile/shell/objects.h"
#include "operator/reconcile/shell/pod_keeper.h"
#include "operator/reconcile/shell/shell.h"
#include "operator/reconcile/shell/status_writer.h"

namespace bsp::reconcile {

// What all jobs of a shell share.
struct ShellParts {
  kube::Client& client;
  kube::Cache& cache;
  NodeViews& nodes;
  const NodeUsage& usage;
  ReservationStore& reservations;
  Authority& authority;
  SidecarThread& sidecar_thread;
  Chores& chores;
  const ShellOptions& options;
};

class JobShell {
 public:
  JobShell(const ShellParts& parts, const JobRef& job, std::function<void()> changed);

  // Does what is due and says how long from now to look again at the latest. Nothing that is thrown meanwhile gets out.
  Duration reconcile();
  [[nodiscard]] const std::string& uid() const { return job_ref_.uid; }

 private:
  Duration look();
  Duration rest_after(const Error& error);
  void set_stalled(bool on, const std::string& reason, const std::string& message);
  const crds::BspJob* read();  // as the cache has it; nullptr if it is gone or can't be carried out
  void refuse(const kube::Object& object, const Error& error);
  Result<void> prepare(const crds::BspJob& job);  // finalizer, CA, links
  void tell_unprepared(const std::string& why);
  Result<void> isolate(const crds::BspJob& job);
  std::vector<observe::NodeFacts> nodes_for(const crds::BspJob& job, const SeenNodes& all) const;
  Observed observe(crds::BspJob job);
  Observed look_at(crds::BspJob job);
  void judge_lost_pods(const SeenNodes& nodes, const crds::BspJobStatus& status, Observed& o);
  void ask_who_hears(const Observed& o);  // those that don't answer
  void gather(const Observed& o);         // asks the Set Managers for reports, when it is time
  // False: somebody was faster, or it can't be written; decide again, after that pause.
  bool reserve(const Observed& o, const Outcome& out, Duration& pause);
  void keep_reserved(const Outcome& out);
  void keep_for_later(const Outcome& out);
  void carry_out(const Observed& o, const Outcome& out);
  Duration rest(const Observed& o, const Outcome& out) const;
  void note_advice(const Observed& o, const Advice& advice);
  void remove_all(const crds::BspJob& job);
  void remove_job();
  void remove_finalizer();

  kube::Client& client_;
  kube::Cache& cache_;
  NodeViews& nodes_;
  const NodeUsage& usage_;
  ReservationStore& reservations_;
  SidecarThread& sidecar_thread_;
  const ShellOptions& options_;
  const JobRef job_ref_;
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
  std::uint64_t completed_ = 0;   // the superstep that all ranks had ended when last looked at
  SteadyTime superstep_ended_{};  // since when; not set while they don't run
  std::uint64_t newest_ = 0;      // superstep that any rank had completed
  SteadyTime progress_{};         // when that was heard
  JobClocks clocks_;
  LostPods lost_;
  std::vector<Event> untold_;  // of stored statuses
  Reservations seen_;          // what the last look was decided on
  std::chrono::steady_clock::time_point isolate_again_{};
  Trouble not_reserved_, not_prepared_, not_isolated_;
  Backoff rests_{std::chrono::milliseconds(200), std::chrono::seconds(30)};  // after reconciles that failed
  std::chrono::steady_clock::time_point rests_until_{};
  std::chrono::steady_clock::time_point next_report_{};
};

}  // namespace bsp::reconcile
