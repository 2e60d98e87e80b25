// Our own use: operator replicas that place ranks of different jobs onto the same pools, each counting its own jobs'
// slots.
//
// Requests arrive at each replica at random times (or at all replicas within a short burst of every period): some slots
// for some time. The replica requests a view, decides for `thinking` seconds, and takes the pool with the most free
// slots, if that has enough; otherwise it retries later. Its pods exist, and count for Naive, `starting` seconds later;
// with the other mechanisms they count from the decision on. A placement is overbooked if it leaves the pool with more
// slots in use than it has. Replicas do nothing else, so they handle messages on arrival, one at a time.
#pragma once

#include <cstdint>

#include "operator/exchange/protocol.h"

namespace bsp::sim::exchange {

struct PoolsParams {
  std::uint32_t replicas = 16;
  std::uint32_t pools = 4;
  std::uint32_t slots_for_a_replica = 32;  // all pools together have replicas × this
  double wanted = 0.95;                    // the share of all slots that the requests would keep in use
  std::uint32_t most_slots = 8;            // of a request: uniform from 1 to this
  double hold = 120;                       // s, mean; exponential
  double thinking = 0.02;                  // s
  double starting = 2;                     // s
  double again = 5;                        // s until a request that found no free slots is retried
  double span = 300;                       // s in which requests arrive
  double period = 30;                      // s, of bursts
  double burst = 0;                        // s: requests arrive in the first `burst` of a period; 0: at any time
  double latency = 200e-6;                 // s
  double message = 20e-6;                  // s of CPU at either end
  std::uint64_t seed = 1;
};

struct PoolsOutcome {
  std::uint64_t placed = 0;
  std::uint64_t overbooked = 0;
  std::uint64_t no_slots = 0;  // decisions that found no free slots
  std::uint64_t messages = 0;
  double waited = 0;  // s of waiting for views, summed over decisions
};

PoolsOutcome place_on_pools(const PoolsParams& params, bsp::exchange::Mechanism mechanism);

}  // namespace bsp::sim::exchange
