// One simulated run: a workload on a platform, with the decision code that moves real ranks (operator/decide).
//
//   i    kAlone      the application without a scheduler
//   ii   kDeciding   with the cost of calls, but without moves: the overhead is ii − i
//   iii  kMigrating  with moves: the gain is i − iii
//
// A superstep takes as long as the slowest rank's computation and messages (with nodes and links shared as in SimGrid),
// plus the barrier. A call adds its cost (ii, iii) and, if it moves ranks, the largest Mem(i,j) of its moves (iii). The
// decision sees the simulated values: CT includes the sharing; BT is the time in which messages from Set j were in
// transit, without the wait for their senders. No call follows the last superstep.
//
// simulate() is deterministic. SimGrid runs in a child process for the duration of the call (child.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/core/error.h"
#include "base/core/ids.h"
#include "operator/decide/model/mapping.h"
#include "operator/decide/model/plan.h"
#include "sim/platform.h"
#include "sim/workload.h"

namespace bsp::sim {

enum class Mode : std::uint8_t { kAlone, kDeciding, kMigrating };

// The inputs and the plan of a call, for a record of the run.
struct CallInProgress {
  const decide::Snapshot& snapshot;
  const decide::State& state;                                // at the window's start
  const std::vector<decide::MeasuredSuperstep>& supersteps;  // of the window, in order
  const decide::Window& window;
  const decide::Params& params;
  const decide::Plan& plan;
};

// Decides at a call. The simulation uses the plan's moves, their costs and `next`.
using Planner = std::function<Result<decide::Plan>(const decide::Snapshot& snapshot, const decide::Window& window,
                                                   const decide::Params& params)>;

struct Scenario {
  const Platform& platform;
  const Workload& workload;
  std::vector<ProcessorId> mapping{};  // by rank, at the start: see initial_mapping() below
  decide::Params params{};             // the mode sets `migrates`
  Mode mode = Mode::kMigrating;
  double deadline = 0;     // s after the start
  bool memoise = true;     // reuse the result of an earlier superstep with the same demand and mapping
  bool keep_calls = true;  // keep snapshot and plan of every call in Outcome::calls
  std::function<void(const CallInProgress& call)> on_call{};
  Planner planner{};  // empty: decide::make_plan
  // Where a plan moves one rank, the first of these in the same Set goes instead: the order among ranks that are alike.
  std::vector<RankId> leave_first{};
};

struct Call {
  Superstep superstep{};  // the superstep before the call
  double at = 0;          // when that superstep ended, s since the start
  decide::Snapshot snapshot{};
  decide::Plan plan{};
};

struct Moved {
  RankId rank{};
  ProcessorId from{}, to{};
  Superstep superstep{};  // the superstep before the move
};

// The supersteps of one window (the end of the run may cut the last one short).
struct Stretch {
  Superstep first{}, last{};
  double begin = 0, end = 0;              // s since the start; calls and migrations are between stretches
  std::vector<ProcessorId> mapping{};     // by rank
  std::vector<double> compute_seconds{};  // by rank, summed
};

struct Outcome {
  double makespan = 0;               // s
  std::vector<double> supersteps{};  // s each, with barrier, without calls and migrations; [0] is superstep 1
  double call_seconds = 0;           // total cost of calls, s
  double migration_seconds = 0;      // total cost of migrations, s
  double cost = 0;            // what the ranks' slots cost, in a migration those of the dearer mapping; 0: no prices
  std::vector<Call> calls{};  // empty without keep_calls
  std::uint64_t calls_made = 0;
  std::vector<Moved> moves{};
  std::vector<Stretch> stretches{};    // one in scenario i
  std::vector<ProcessorId> mapping{};  // by rank, at the end
  std::uint64_t messages = 0;          // sent by the application
  std::uint64_t simulated = 0;         // supersteps simulated, not taken from the cache
};

Result<Outcome> simulate(const Scenario& scenario);

// All three scenarios of a workload; ignores `mode`, and passes the calls of iii to on_call. It simulates nothing
// twice: i has the supersteps of ii, and ii equals iii if nothing moved.
struct Scenarios {
  Outcome alone, deciding, migrating;
};
Result<Scenarios> simulate_all(Scenario scenario);

// The mappings of operator/decide/model/mapping.h on the platform's nodes.
Result<std::vector<ProcessorId>> initial_mapping(const Platform& platform, decide::Mapping mapping,
                                                 std::uint32_t ranks);

}  // namespace bsp::sim
