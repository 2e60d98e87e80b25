// The migration state machine: drawing in README.md, one function, no I/O, no clock.
//
// A step changes the wave or asks for actions, never both (operator/step.h). Phases whose work is done already are
// passed in one change.
#pragma once

#include <optional>
#include <vector>

#include "operator/migrate/action.h"
#include "operator/migrate/view.h"
#include "operator/migrate/wave.h"
#include "operator/step.h"

namespace bsp::migrate {

// Checkpoint and restore have, for the largest rank that moves, this much longer:
//
//   memory / max(least_bytes_per_second, min(bytes_per_second, measured bandwidth / slack))
//
// so that a rank of 10 MB is given up after 9 s at most, and one of 1 GB has 31 s at first, 4 minutes at last.
struct Limits {
  Duration prepare = std::chrono::seconds(60);     // target pod there, warm, everyone prepared
  Duration unreachable = std::chrono::seconds(4);  // of a sidecar, before the wave gives up
  Duration postponed = std::chrono::minutes(5);    // a committed gate that no rank has closed at
  Duration close = std::chrono::seconds(6);        // from the first rank that stops to the last
  Duration checkpoint = std::chrono::seconds(6);   // from the first dump until all is received; grows with size
  Duration restore = std::chrono::seconds(6);      // grows with size
  double bytes_per_second = 40e6;                  // of a link or disk that was never measured
  double slack = 2;                                // how much slower than measured it may get
  double least_bytes_per_second = 4e6;             // all ranks wait: no move is worth more
  Duration discard = std::chrono::seconds(2);      // until a target has discarded its copy
  Duration rollback = std::chrono::seconds(20);    // until all ranks run again where they were
  Duration resume = std::chrono::seconds(30);      // until all ranks run in the next epoch
  std::uint32_t gate_attempts = 8;
};

// `commit` is the plan to be written to BSPJob.status.epoch in the same update as the wave (compare-and-swap on
// resourceVersion: an older operator that wakes up late can't commit). This write is the commit point of a migration:
// before it every failure rolls back, after it the wave only goes forward.
struct WaveChange {
  Wave wave;
  std::optional<wire::EpochPlan> commit = std::nullopt;
};
using Step = bsp::Step<WaveChange, std::vector<Action>>;

Step step(const Wave& wave, const View& view, Time now, const Limits& limits);

}  // namespace bsp::migrate
