// The life of one BSPJob: a pure function from what is observed to the next step.
//
//   Pending ─> Starting ─> Running <─> Migrating          every rank exits 0     ─> Succeeded
//    ^ │ ^        │           │            │              no attempt left, or
//    │ v │        v           v            v              nothing to retry       ─> Failed
//    │ Suspended <┴─ suspend ─┘ (a wave is rolled back first)
//    │
//    └─ Restarting <── a rank or its pod is lost, exits ≠ 0, never gets ready, or a wave fails
//
// Level-based: it reads everything each time and never asks what happened.
#pragma once

#include "crds/fencing.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

struct JobLimits {
  Duration unreachable = std::chrono::seconds(10);         // of a sidecar, before it is reported (silence.h)
  Duration isolated = fencing::kLimit + fencing::kMargin;  // of one that no other rank hears either
  Duration start = std::chrono::minutes(5);                // until all pods are ready
  // Before the second attempt; twice as long before each further one, at most kLongestRestart. 0: at once.
  Duration restart{};
  // How long a failed rank's container may take to end after its sidecar has reported the program's exit.
  Duration container_end = std::chrono::seconds(2);
  // How long a deleted job waits at most for its checkpoint sets to be removed: less than uninstall.timeoutSeconds of the chart.
  Duration reclaim = std::chrono::minutes(3);
  // How long the loss of a rank may take to show after another has ended as those do that have lost a peer.
  Duration cause = std::chrono::seconds(5);
};

inline constexpr Duration kLongestRestart = std::chrono::minutes(6);  // as a Job's

Step reconcile_job(const Observed& o, const Advice& advice, const migrate::Limits& limits, const JobLimits& job_limits);

// Why an attempt can't go on, and whether another one might.
struct Failure {
  std::optional<std::uint32_t> rank;
  Seat seat;  // of no pod: none
  std::string reason;
  std::string message;
  bool final = false;
  bool of_survivor = false;  // the program may have ended because another rank was lost
  SteadyTime since{};        // when it was first seen, if that is known
};
// The program ended with code 0: its sidecar knows how it ended, the node only how bsp-init did. Null: not known.
bool exited_well(const AppFacts* app, const wire::RankStatus* said);
std::optional<Failure> find_failure(const Observed& o, const JobLimits& limits);
// "; it was on node X, which is not ready": for the message about a lost rank. "" if no node is known.
std::string where(const crds::RankPlace& place, const Observed& o);

}  // namespace bsp::reconcile
