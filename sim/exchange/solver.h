// The solver of workload.h on a simulated cluster, its processes exchanging loads by the real state machines.
//
// A discrete-event simulation: a message costs its sender and its receiver CPU time and travels for a latency. A
// process looks at messages only between two tasks, or, with `threaded`, a second thread of it looks every `poll`
// seconds and takes its time from the computing one. Who waits for a view computes nothing meanwhile. Work for a slave
// travels as an ordinary message.
//
// Why no SimGrid: the network of this study is a latency and two costs, and a run delivers up to 10⁸ messages; here a
// broadcast is one event, there it would be one flow and one actor's wake-up for each receiver.
#pragma once

#include <cstdint>
#include <optional>

#include "operator/exchange/protocol.h"
#include "sim/exchange/workload.h"

namespace bsp::sim::exchange {

struct Cluster {
  double latency = 50e-6;  // s
  double send = 2e-6;      // s of the sender's CPU for each message
  double receive = 5e-6;   // s of the receiver's CPU for each message
  bool threaded = false;
  double poll = 50e-6;  // s between two looks of the second thread
  // As in the source: who has answered begins no task until the asker has decided, so that the view stays true.
  bool hold = true;
};

struct Outcome {
  std::uint64_t messages = 0;      // of the exchange; work itself not counted
  std::uint64_t reservations = 0;  // of them: Reserve
  std::uint64_t decisions = 0;
  double makespan = 0;     // s
  double view_error = 0;   // s: mean over decisions and members of |believed − true load|
  double worst_error = 0;  // s: mean over decisions of the largest
  double peak = 0;    // s: mean over decisions of the highest load that a slave really has afterwards, above the level
                      // that the true loads would have allowed
  double wait = 0;    // s, mean over decisions
  double waited = 0;  // s, sum over all processes: for their own views
  double held = 0;    // s, sum over all processes: for others' decisions (Cluster::hold)
  double message_cpu = 0;  // s, sum over all processes
};

// Without a mechanism: all masters see the true loads at once and for nothing, the best that any mechanism could do.
Outcome solve(const Workload& workload, const Cluster& cluster, std::optional<bsp::exchange::Mechanism> mechanism,
              double threshold);

}  // namespace bsp::sim::exchange
