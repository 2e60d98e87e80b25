// The simulated platform as a value: Sets of nodes, the network between them, and the costs of a barrier, a migration
// and a rescheduling call.
//
//   node ──link── (Set's switch) ──uplink── router ──trunk── router ──uplink── (switch) ──link── node
//
// A message inside a Set crosses the links of its two nodes. A message between Sets also crosses both uplinks and the
// trunks on the shortest path between the two routers. Links of nodes, uplinks and trunks are full duplex. A byte costs
// 1 / (the least bandwidth on its path), and each message the sum of the latencies; simultaneous messages share a link
// evenly (max-min fairness). There are no other factors: SimGrid's CM02 with latency and bandwidth factors 1, no TCP
// window, no acknowledgement traffic. A message between ranks on one node costs nothing.
//
// Platforms come from a SimGrid platform file (read_platform_file), local mode's --pools (platform_of_pools), or code.
// Units: instructions/s, bytes/s, s, bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/core/ids.h"
#include "operator/decide/model/model.h"

namespace bsp::sim {

struct Link {
  double bandwidth = std::numeric_limits<double>::infinity();  // bytes/s, > 0; infinite: never the narrowest
  double latency = 0;                                          // s
  bool shared = true;                                          // false: every message gets the whole bandwidth
};

struct Node {  // one processor; its ranks share it evenly
  std::string name{};
  double speed = 0;         // instructions/s, > 0
  std::uint32_t slots = 0;  // ranks it can hold; 0 = any number
  double load = 0;          // external load, 0 <= load < 1: the ranks get speed·(1 − load)
  double price = 0;         // of a slot, an hour; 0: none
  std::string host{};       // from a platform file: the host whose core it is; "" = the host called `name`
};

struct Set {
  std::string name{};
  std::vector<Node> nodes{};
  Link link{};           // of each node to the Set's switch
  Link uplink{};         // of the Set's switch to its router
  std::string router{};  // its name; Sets with the same name share the router
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

// The cost of one rescheduling call with n processes: linear between the points, proportional to n below the first,
// constant above the last; 0 without points.
struct CallCost {
  struct Point {
    std::uint32_t ranks;
    double seconds;
  };
  std::vector<Point> points{};  // increasing ranks
  double factor = 1;            // adapts the cost to an application

  [[nodiscard]] double seconds(std::uint32_t ranks) const;
};

// How a rank receives several messages of one superstep: all at once, sharing its link, or one after the other, in the
// order of the demand.
enum class Delivery : std::uint8_t { kAtOnce, kInTurn };
// When a message starts: when its sender has finished computing, or when every rank has (BSP's phases, strictly
// separate).
enum class Departure : std::uint8_t { kSenderReady, kAllReady };
// How a message crosses from Set to Set: all its links at once, at the pace of the narrowest, or first the uplinks and
// trunks and then, stored there, the link of the receiving node, so that a byte costs the sum of both.
enum class Forwarding : std::uint8_t { kThrough, kStored };

struct Platform {
  std::vector<Set> sets{};  // index = SetId
  std::vector<Trunk> trunks{};
  double mig_seconds = 0;     // Mig(i,j), the fixed cost of a migration
  double image_copies = 1;    // how often a migration carries an image over the network: Mem = copies · M · T + Mig
  bool move_repeats = false;  // a call that moves ranks costs at least its superstep again; unknown to the decision
  Barrier barrier{};
  CallCost call{};
  Delivery delivery = Delivery::kAtOnce;
  Departure departure = Departure::kSenderReady;
  Forwarding forwarding = Forwarding::kThrough;
  // A platform file: its hosts are the nodes and its routes the network; links, uplinks and trunks are unused.
  std::string file{};
  decide::Grid<double> file_T{};  // s/byte, between the first two hosts of two Sets
};

// kInvalid names what is missing or out of range.
Result<void> validate(const Platform& platform);

// The platform with only these Sets, in this order; without names, all of them sorted by name. The operator selects a
// job's Sets in the same way. kInvalid lists the known Sets.
Result<Platform> with_sets(const Platform& platform, const std::vector<std::string>& names);

// The decision's view: cpu and load of every node, T(a,b) = s/byte between nodes of a and b without other messages,
// Mig. Processors are numbered Set by Set: all of Set 0, all of Set 1, … kInvalid as from validate(), or if two Sets
// aren't connected.
Result<decide::Platform> decision_platform(const Platform& platform);

// Reads a SimGrid 4 platform file (DTD version 4.1). A host's Set is its property `set`, otherwise that of the
// innermost zone around it that has one, otherwise the name of its own zone. Sets are in the order of their zones,
// hosts in the order of their names (2 before 10). Properties of a host: `slots`, `load`; of the outermost zone: `mig`,
// `barrier`, `barrier_per_outsider` (seconds), `call` (RANKS=SECONDS,…). A host with c > 1 cores becomes c nodes host-0
// … with one slot each.
Result<Platform> read_platform_file(const std::string& path);

// `slow=3x0.25,fast=2x0.6` as in local mode: nodes with one slot. A whole core runs at `core_speed`. The defaults are
// what the operator assumes in a cluster that it hasn't measured yet.
struct PoolsNetwork {
  double core_speed = 1e9;                          // instructions/s
  Link link{.bandwidth = 300e6, .latency = 50e-6};  // of each node; the path between pools is never narrower
  double mig_seconds = 0.3;
};
Result<Platform> platform_of_pools(const std::string& pools, const PoolsNetwork& network = {});

}  // namespace bsp::sim
