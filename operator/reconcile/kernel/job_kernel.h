// One step of a job as it is worked out: job.cc chooses by phase, job_start.cc, job_resumes.cc and job_run.cc hold the longer phases.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/core/first_few.h"
#include "operator/reconcile/kernel/checkpoints/resumption.h"
#include "operator/reconcile/kernel/job.h"
#include "operator/reconcile/kernel/silence.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

inline constexpr const char* kNoSuchSet = "NoSuchSet";  // status.reason, as is the next
inline constexpr const char* kNoRoom = "NoCapacity";

// The scheduler's words for a claim that isn't there, or that nothing provides a volume for.
bool lacks_claim(const std::string& unscheduled);

struct JobKernel {
  const Observed& o;
  const Advice& advice;
  const migrate::Limits& limits;
  const JobLimits& job_limits;
  StatusChange change;  // its status is the job's own to begin with
  Silence silence = {};
  bool stores = false;     // the change; else the work is done
  std::string group = {};  // of the start, in phase Starting
  Work work = {};
  Notices notices = {};

  crds::BspJobStatus& status() { return change.status; }
  Step take();

  void by_phase();
  void deleted();  // the job is
  void warn();
  bool has_late_news() const;  // something to be stored although no step of the job needs it

  // The phases, one function each.
  void pending();
  void starting();
  void running();  // Migrating too
  void restarting();
  void suspended();
  void finished();

  // --- What they share ---
  void enter(crds::JobPhase phase, std::string reason, std::string message);
  // By the user, or by Kueue: the job may have no pods.
  bool held() const { return o.job.spec.run_policy.suspend || (o.queued && !admits(*o.queued)); }
  void suspend();
  std::pair<std::string, std::string> hold() const;  // reason and message
  // Restarting, or Failed if `failure` is final or backoffLimit used up.
  void succeed() { enter(crds::JobPhase::kSucceeded, "Completed", "every rank exited with code 0"); }
  void fail_attempt(const Failure& failure);
  void note_restart(std::string reason, std::string message, std::optional<RankId> rank = {});
  // The sidecar reports an exit before the runtime has written the container's last lines and why it was killed.
  bool container_ends(const Failure& failure) const;
  // It may follow from the loss of another rank, of which nothing is known yet.
  bool cause_may_show(const Failure& failure) const {
    return failure.of_survivor && o.steady - failure.since < job_limits.cause;
  }
  bool past_deadline() const;
  Duration restart_pause() const;
  void fail_by_deadline();
  // As find_failure() sees it: the sidecar knows how the program ended, the node only how bsp-init did.
  bool exited_well(const crds::RankPlace& place) const;
  // A pod on a lost node no longer counts once nothing can run there: its name and certificate are never used again.
  bool pods_left() const;
  void note_lost_pods();     // which the next attempt waits for
  void remember_vanished();  // in the status
  void delete_all_pods();
  // Ends the migration that it names, if it is there.
  void refuse(const Refusal& refusal);
  // Ends migrations that belong to no wave; `wave` is the stored one, or null.
  void end_orphans(const migrate::Wave* wave);
  // Ends requests to leave a node, whichever: the ranks' pods are going, so that the ranks leave it anyway.
  void refuse_older();
  void end_departures();

 private:
  // Which pods are not ready and what they lack.
  struct NotReady {
    FirstFew all;
    std::string delay;        // why a container of the first of them isn't started, where waiting may help
    bool by_image = false;    // which that container waits for
    bool missing = false;     // one of them isn't there
    std::string refused;      // why one can't be had until somebody does something about it; "": none is
    bool for_others = false;  // to do something about it: a scheduler, or who has set a quota
    void add(const crds::RankPlace& place, std::string_view lack, bool of_others = false);
  };

  bool rebuild();    // false: the job starts from its beginning
  bool went_back();  // went_back.h; false: it hasn't
  std::string mapped();
  // The start's PodGroup is there; else it is being made, or the job waits for it.
  bool has_pod_group(std::uint32_t generation, std::uint32_t pods);
  void keep_pod_group();               // for the pods that wait in it
  std::string group_of_start() const;  // in phase Starting; "": none
  // Of a start that waits for room by itself.
  Result<std::vector<ProcessorId>> map_beyond_room(std::vector<observe::NodeFacts> nodes) const;
  Result<std::vector<ProcessorId>> map_to(const std::vector<std::string>& sets) const;
  void no_such_set(const std::string& name);
  [[nodiscard]] std::string has_no_node(const std::string& set) const;
  void wait_for_capacity(const char* reason, const std::string& why);
  // Why the job can't have all its slots now and will have them: others hold them, or start first. "": it need not wait.
  std::string waits_for_slots(const std::vector<std::string>& sets, bool mapped) const;
  void place_all(const std::vector<ProcessorId>& mapping, const decide::Platform& platform);
  void seat_all();
  std::vector<std::uint32_t> ranks_beside(const crds::RankPlace& first) const;
  bool create_pod(const crds::RankPlace& place, NotReady& not_ready);
  void check_pod(const crds::RankPlace& place, const PodFacts& pod, NotReady& not_ready) const;
  void wait_for(const NotReady& not_ready);
  // A pod of the start can't be had for long; the job is Pending then.
  bool gives_slots_back(const NotReady& not_ready);
  bool waits_for_pods() const;  // before it tries again
  void set_cpu_level(wire::EpochPlan& plan);
  bool open_epoch();
  std::vector<observe::NodeFacts> nodes_at_start(std::vector<observe::NodeFacts> nodes) const;
  void keep_off_unfit_nodes(PodRequest& request) const;
  bool resumed();
  void try_again(const crds::StoredSet& set, const Resumption& resumption);
  bool may_start_elsewhere(const crds::StoredSet& set) const;
  void start_elsewhere(const crds::StoredSet& set, const std::string& unfit);
  void begin_moves();
  void note_waiting(const Refusal& why);
  void note_drain(const std::string& stuck);
  void migrating(const migrate::Wave& wave);
  void count_wave(const migrate::Wave& wave);
  void after_wave(const migrate::Wave& wave);
};

}  // namespace bsp::reconcile
