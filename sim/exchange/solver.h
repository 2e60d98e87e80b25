// The solver of workload.h on a simulated cluster; its processes exchange loads with the real state machines.
//
// A discrete-event simulation: a message costs its sender and its receiver CPU time and has a latency. A process reads
// messages only between two tasks or, with `threaded`, a second thread reads them every `poll` seconds, at the expense
// of the computing thread. A process that waits for a view doesn't compute. Work for a slave travels as an ordinary
// message.
//
// Why not SimGrid: this study's network is a latency and two costs, and a run delivers up to 10⁸ messages. Here a
// broadcast is one event; with SimGrid it would be one flow and one actor's wake-up for each receiver.
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
  double poll = 50e-6;  // polling interval of the second thread, s
  // As in the source: a process that has answered starts no task until the asker has decided, so that the view stays
  // exact.
  bool hold = true;
};

struct Outcome {
  std::uint64_t messages = 0;      // of the exchange, without the work itself
  std::uint64_t reservations = 0;  // those that are Reserve
  std::uint64_t decisions = 0;
  double makespan = 0;     // s
  double view_error = 0;   // s: mean over decisions and members of |believed − true load|
  double worst_error = 0;  // s: mean over decisions of the largest
  double peak = 0;    // s: mean over decisions of the highest true load of a slave afterwards, above the level that the
                      // true loads would have allowed
  double wait = 0;    // s, mean over decisions
  double waited = 0;  // s of waiting for their own views, summed over all processes
  double held = 0;    // s of waiting for others' decisions (Cluster::hold), summed over all processes
  double message_cpu = 0;  // s, sum over all processes
};

// Without a mechanism, all masters see the true loads at once and at no cost: the best that any mechanism could do.
Outcome solve(const Workload& workload, const Cluster& cluster, std::optional<bsp::exchange::Mechanism> mechanism,
              double threshold);

}  // namespace bsp::sim::exchange
