// Our own case: operator replicas that place ranks of different jobs onto the same pools, each counting its own jobs'
// slots.
//
// Requests come to each replica at random times (or all replicas' within a short burst of every period): some slots for
// some time. The replica wants a view, decides for `thinking` seconds, and takes the pool with the most free slots, if
// that has enough; else it asks again later. Its pods exist, and count for Naive, `starting` seconds later; with the
// other mechanisms they count from the decision on. A placement is overbooked when the pool then has more slots taken
// than it has. Replicas do nothing but this, so that messages are handled as they come, one after the other.
#pragma once

#include <cstdint>

#include "operator/exchange/protocol.h"

namespace bsp::sim::exchange {

struct PoolsParams {
  std::uint32_t replicas = 16;
  std::uint32_t pools = 4;
  std::uint32_t slots_for_a_replica = 32;  // all pools together have replicas × this
  double wanted = 0.95;                    // part of all slots that the requests would keep in use
  std::uint32_t most_slots = 8;            // of a request: 1 to this, each as likely
  double hold = 120;                       // s, mean; exponential
  double thinking = 0.02;                  // s
  double starting = 2;                     // s
  double again = 5;                        // s until a request that found no room is tried again
  double span = 300;                       // s in which requests come
  double period = 30;                      // s, of bursts
  double burst = 0;                        // s: requests of a period all come in its first `burst`; 0: at any time
  double latency = 200e-6;                 // s
  double message = 20e-6;                  // s of CPU, either end
  std::uint64_t seed = 1;
};

struct PoolsOutcome {
  std::uint64_t placed = 0;
  std::uint64_t overbooked = 0;
  std::uint64_t no_room = 0;  // decisions that found none
  std::uint64_t messages = 0;
  double waited = 0;  // s, sum over decisions: for the view
};

PoolsOutcome place_on_pools(const PoolsParams& params, bsp::exchange::Mechanism mechanism);

}  // namespace bsp::sim::exchange
