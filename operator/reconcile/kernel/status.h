// The parts of a job's status that only mirror the world: conditions, places, counts.
#pragma once

#include "operator/decide/plan.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// Condition of a job that the operator fails to look after for an error of its own.
inline constexpr const char* kStalled = "Stalled";
// Types of the conditions that warn of what holds up a job, or keeps its ranks where they are.
inline constexpr const char* kMovesLackMemory = "MovesLackMemory";
inline constexpr const char* kSeccompReplaced = "SeccompProfileReplaced";
inline constexpr const char* kCpuThrottled = "CPUThrottled";
inline constexpr const char* kNoSupersteps = "NoSupersteps";
inline constexpr const char* kReportsRejected = "ReportsRejected";
inline constexpr const char* kWaveDelayed = "WaveDelayed";
// Ranks that a wave waits for, by name, for as long as it does: no time ends that (operator/migrate). `delay`: "" for none.
void show_delay(const Observed& o, const std::string& delay, crds::BspJobStatus& status);
// A CPU limit that throttles a rank, where the template has one at all. True if the condition has just turned to True.
bool warn_of_throttling(const Observed& o, crds::BspJobStatus& status);
// Ranks that may move and end no superstep, so that nobody can. True if the condition has just turned to True.
bool warn_of_no_supersteps(const Observed& o, crds::BspJobStatus& status);

// Nodes with a free slot that have not the memory for a move (move_memory.h). True if the condition has just turned to True.
bool warn_of_move_memory(const Observed& o, crds::BspJobStatus& status);
// A seccomp profile of the template that the program does not run under. True if the condition has just turned to True.
bool warn_of_seccomp(const Observed& o, crds::BspJobStatus& status);
// A condition as it is from now on.
void turn_condition(const Observed& o, crds::BspJobStatus& status, const char* type, bool on, std::string reason,
                    std::string message);
// A sidecar that said lately what can't be so, or nobody could read. True if the condition has just turned to True.
bool warn_of_rejected_reports(const Observed& o, crds::BspJobStatus& status);

// Conditions, ranks per Set, blocked reasons, superstep. A second call changes nothing.
void refresh_status(const Observed& o, crds::BspJobStatus& status);

// A plan as it is shown in status.lastDecision.
crds::Decision to_decision(const decide::Plan& plan, const decide::Snapshot& snapshot, Time now, double imbalance,
                           crds::ReschedulingMode mode);

}  // namespace bsp::reconcile
