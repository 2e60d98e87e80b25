// The simulated platform as a value: Sets of nodes, what the network between them does, and what a barrier, a migration
// and a rescheduling call cost.
//
//   node ──link── (Set's switch) ──uplink── router ──trunk── router ──uplink── (switch) ──link── node
//
// A message inside a Set crosses the links of its two nodes, one between Sets the links, both uplinks and the trunks on
// the shortest way between the two routers. Links of nodes, uplinks and trunks are full duplex. A byte costs 1 / (the
// least bandwidth on its way), a message once the sum of its latencies; messages that cross the same link at the same
// time share it evenly (max-min fairness). There are no other factors: SimGrid's CM02 with latency and bandwidth
// factors 1, no TCP window, no traffic of acknowledgements. A message between ranks on one node costs nothing.
//
// Three ways to one: a SimGrid platform file (read_platform_file), local mode's --pools (platform_of_pools), or code.
// Units: instructions/s, bytes/s, s, bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/core/ids.h"
#include "operator/decide/model.h"

namespace bsp::sim {

struct Link {
  double bandwidth = std::numeric_limits<double>::infinity();  // bytes/s, > 0; infinite: never the narrowest
  double latency = 0;                                          // s
  bool shared = true;  // false: every message gets the whole bandwidth, however many there are
};

struct Node {  // one processor: ranks on the same one share it evenly
  std::string name{};
  double speed = 0;         // instructions/s, > 0
  std::uint32_t slots = 0;  // ranks it can hold; 0 = any number
  double load = 0;          // external load, 0 <= load < 1: the ranks get speed·(1 − load)
  std::string host{};       // of a platform file: the host that it is a core of; "" = the one called `name`
};

struct Set {
  std::string name{};
  std::vector<Node> nodes{};
  Link link{};           // of each node to the Set's switch
  Link uplink{};         // of the Set's switch to its router
  std::string router{};  // its name; Sets with the same name meet there
};

struct Trunk {  // between two routers
  std::string from{}, to{};
  Link link{};
};

struct Barrier {  // s, at the end of every superstep
  double constant = 0;
  double per_outsider = 0;  // for each process outside the Set of process 1 (rank 0)
  double per_trunk = 0;     // for each trunk between such a process's router and that Set's
};

// What one rescheduling call costs with n processes: linear between the points, proportional to n below the first,
// constant above the last. No points: 0.
struct CallCost {
  struct Point {
    std::uint32_t ranks;
    double seconds;
  };
  std::vector<Point> points{};  // increasing ranks
  double factor = 1;            // of an application that pays otherwise

  [[nodiscard]] double seconds(std::uint32_t ranks) const;
};

// How a rank takes several messages of one superstep: all at once, sharing its link, or one after the other, in the
// order of the demand.
enum class Delivery : std::uint8_t { kAtOnce, kInTurn };
// When a message starts: when its sender has computed, or when every rank has (the phases of BSP, strictly apart).
enum class Departure : std::uint8_t { kSenderReady, kAllReady };

struct Platform {
  std::vector<Set> sets{};  // index = SetId
  std::vector<Trunk> trunks{};
  double mig_seconds = 0;  // Mig(i,j), the fixed cost of a migration
  double move_seconds =
      0;  // what a call that moves ranks takes besides the largest Mem; the decision does not know of it
  Barrier barrier{};
  CallCost call{};
  Delivery delivery = Delivery::kAtOnce;
  Departure departure = Departure::kSenderReady;
  // Of a platform file: its hosts are the nodes and its routes are the network; links, uplinks and trunks are then
  // unused.
  std::string file{};
  decide::Grid<double> file_T{};  // s/byte, between the first two hosts of two Sets
};

// kInvalid: what is missing or out of range, by name.
Result<void> validate(const Platform& platform);

// Only these Sets, in this order; none named: all, by name. That is how the operator chooses a job's Sets. kInvalid
// lists those that there are.
Result<Platform> with_sets(const Platform& platform, const std::vector<std::string>& names);

// What the decision is told: cpu and load of every node, T(a,b) = s/byte on the way between nodes of a and b without
// other messages, Mig. Processors are numbered through the Sets: all of Set 0, all of Set 1, … kInvalid as validate()
// has it, or if two Sets are not connected.
Result<decide::Platform> decision_platform(const Platform& platform);

// A SimGrid 4 platform file (DTD version 4.1). A host's Set is its property `set`, else that of the innermost zone
// around it that has one, else the name of its own zone. Sets come in the order of their zones, hosts in that of their
// names (2 before 10). Properties of a host: `slots`, `load`. Of the outermost zone: `mig`, `barrier`,
// `barrier_per_outsider` (seconds), `call` (RANKS=SECONDS,…). A host of c > 1 cores is c nodes host-0 … with one slot
// each.
Result<Platform> read_platform_file(const std::string& path);

// `slow=3x0.25,fast=2x0.6` as local mode has it: nodes with one slot. A whole core counts as `core_speed`.
// What they don't say is what the operator assumes of a cluster that it has not measured yet.
struct PoolsNetwork {
  double core_speed = 1e9;                          // instructions/s
  Link link{.bandwidth = 300e6, .latency = 50e-6};  // of each node; the way from pool to pool is never narrower
  double mig_seconds = 0.3;
};
Result<Platform> platform_of_pools(const std::string& pools, const PoolsNetwork& network = {});

}  // namespace bsp::sim
