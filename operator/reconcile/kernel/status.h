// The parts of a job's status that mirror the cluster: conditions, places, counts.
#pragma once

#include "operator/reconcile/kernel/conditions.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

constexpr bool is_running(crds::JobPhase phase) {
  return phase == crds::JobPhase::kRunning || phase == crds::JobPhase::kMigrating;
}
// Every rank has a place, and a pod or soon one.
constexpr bool has_places(crds::JobPhase phase) { return phase == crds::JobPhase::kStarting || is_running(phase); }
// The ranks are in an epoch, and compute or move.
inline bool ranks_run(const crds::BspJobStatus& status) { return is_running(status.phase) && status.epoch; }
// The rank there is a member of the epoch; its Set is added to the plan's if no node belongs to it any more.
void add_member(wire::EpochPlan& plan, const crds::RankPlace& place, const PodFacts& facts);

// Names the ranks that a wave waits for; it has no limit for that (operator/migrate). `delay`: "" for none.
void show_delay(const Observed& o, const std::string& delay, crds::BspJobStatus& status);
// A CPU limit of the template that throttles a rank. These return true if the condition has just become True.
bool warn_of_throttling(const Observed& o, crds::BspJobStatus& status);
// Ranks that may move but complete no superstep, so none can.
bool warn_of_no_supersteps(const Observed& o, crds::BspJobStatus& status);

// Ranks with counted instructions beside ranks with CPU time only, so none moves (observe/work.h).
bool warn_of_mixed_units(const Observed& o, crds::BspJobStatus& status);

// Ranks that can't go to a Set of the job, because of the features of its CPUs (observe/cpu_facts.h).
bool warn_of_cpu_features(const Observed& o, crds::BspJobStatus& status);

// Nodes with a free slot but without the memory for a move (move_memory.h).
bool warn_of_move_memory(const Observed& o, crds::BspJobStatus& status);
// A seccomp profile of the template that the program does not run under.
bool warn_of_seccomp(const Observed& o, crds::BspJobStatus& status);
// Fields of the template that the pods have otherwise.
bool warn_of_overrides(const Observed& o, crds::BspJobStatus& status);
// The condition is there and true.
bool is_on(const crds::BspJobStatus& status, const char* type);
// Sets a condition, whose message ends with its remedy while it is on.
void turn_condition(const Observed& o, crds::BspJobStatus& status, const char* type, bool on, std::string reason,
                    std::string message);
// A sidecar that recently sent something impossible or unreadable.
bool warn_of_rejected_reports(const Observed& o, crds::BspJobStatus& status);

// Conditions, ranks per Set, blocked reasons, superstep. A second call changes nothing.
void refresh_status(const Observed& o, crds::BspJobStatus& status);

}  // namespace bsp::reconcile
