// One simulated run: a workload on a platform, with the decision code that moves real ranks (operator/decide).
//
//   i    kAlone      the application without a scheduler
//   ii   kDeciding   calls are made and paid for, nothing moves: its overhead is ii − i
//   iii  kMigrating  with the moves: its gain is i − iii
//
// A superstep takes as long as the slowest rank's computation and messages (as SimGrid shares nodes and links), and the
// barrier. After the superstep of a call come the call's cost (ii, iii) and, if it moves ranks, the largest Mem(i,j) of
// its moves (iii). What the decision sees is what was simulated: CT with the sharing in it, BT the time in which
// messages of Set j were on their way, without the wait for their senders. No call follows the last superstep.
//
// simulate() is deterministic. SimGrid itself runs in a child process for as long as that takes (child.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/core/error.h"
#include "base/core/ids.h"
#include "operator/decide/mapping.h"
#include "operator/decide/plan.h"
#include "sim/platform.h"
#include "sim/workload.h"

namespace bsp::sim {

enum class Mode : std::uint8_t { kAlone, kDeciding, kMigrating };

// What is there at a call, while it is made: whoever records runs takes it from here.
struct CallInProgress {
  const decide::Snapshot& snapshot;
  const decide::State& state;                                // at the window's start
  const std::vector<decide::MeasuredSuperstep>& supersteps;  // of the window, in order
  const decide::Window& window;
  const decide::Params& params;
  const decide::Plan& plan;
};

// Who decides at a call. The plan's moves, their costs and `next` count.
using Planner = std::function<Result<decide::Plan>(const decide::Snapshot& snapshot, const decide::Window& window,
                                                   const decide::Params& params)>;

struct Scenario {
  const Platform& platform;
  const Workload& workload;
  std::vector<ProcessorId> mapping{};  // by rank, at the start: see initial_mapping() below
  decide::Params params{};             // `migrates` is set by the mode
  Mode mode = Mode::kMigrating;
  bool memoise = true;     // a superstep like an earlier one (same demand, same mapping) is not simulated again
  bool keep_calls = true;  // Outcome::calls hold snapshot and plan of every call
  std::function<void(const CallInProgress& call)> on_call{};
  Planner planner{};  // empty: decide::make_plan
};

struct Call {
  Superstep superstep{};  // it follows
  double at = 0;          // s since the start, when that superstep had ended
  decide::Snapshot snapshot{};
  decide::Plan plan{};
};

struct Moved {
  RankId rank{};
  ProcessorId from{}, to{};
  Superstep superstep{};  // after which
};

// The supersteps of one window (the last one may have been cut short by the end of the run).
struct Stretch {
  Superstep first{}, last{};
  double begin = 0, end = 0;              // s since the start; calls and migrations lie between stretches
  std::vector<ProcessorId> mapping{};     // by rank
  std::vector<double> compute_seconds{};  // by rank, summed
};

struct Outcome {
  double makespan = 0;               // s
  std::vector<double> supersteps{};  // s each, barrier included, calls and migrations not; [0] is superstep 1
  double call_seconds = 0;           // s paid for all calls …
  double migration_seconds = 0;      // … and for all migrations
  std::vector<Call> calls{};         // empty without keep_calls
  std::uint64_t calls_made = 0;
  std::vector<Moved> moves{};
  std::vector<Stretch> stretches{};    // in i one
  std::vector<ProcessorId> mapping{};  // by rank, at the end
  std::uint64_t messages = 0;          // that the application sent
  std::uint64_t simulated = 0;         // supersteps that were simulated, not remembered
};

Result<Outcome> simulate(const Scenario& scenario);

// All three of the same workload, `mode` being ignored; on_call sees the calls of iii. Nothing is simulated twice: i
// are the supersteps of ii, and ii is iii if nothing moved.
struct Scenarios {
  Outcome alone, deciding, migrating;
};
Result<Scenarios> simulate_all(Scenario scenario);

// As operator/decide/mapping.h has them, over the nodes of the platform.
Result<std::vector<ProcessorId>> initial_mapping(const Platform& platform, decide::Mapping mapping,
                                                 std::uint32_t ranks);

}  // namespace bsp::sim
