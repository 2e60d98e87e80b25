// How the operator gathers the reports of all ranks: flat (it asks every rank) or through Set Managers (one rank of
// each Set asks the others). Simulates one round message by message; all nodes are idle, and all requests are sent at
// once.
//
// Every node is one thread that handles one message at a time. A message costs a fixed time plus a time per byte of
// JSON (for sending and for receiving), and the network interface has a bandwidth. Messages between nodes have a
// latency.
#pragma once

#include <cstdint>

namespace bsp::sim::exchange {

enum class Gathering {
  kFlat,       // operator -> rank
  kManagers,   // operator -> Set Manager -> rank; the manager forwards whole reports, as sidecars do (wire.h,
               // setReport)
  kCondensed,  // the same, but the manager forwards only what a PM list needs for each rank: rank, target, PM
};

struct GatherParams {
  std::uint32_t ranks = 1000;
  std::uint32_t sets = 64;
  double latency_between = 200e-6;  // s, operator <-> any rank
  double latency_within = 50e-6;    // s, inside a Set
  double message = 20e-6;           // s of CPU per message at either end
  double byte = 10e-9;              // s of CPU per byte at either end
  double interface = 1.25e9;        // bytes/s
  double report_bytes = 0;          // of one rank
  double request_bytes = 100;       // of one rank's part in a request
  double condensed_bytes = 24;      // of one rank
};

struct Gathered {
  std::uint64_t messages = 0;           // all, requests and answers
  std::uint64_t operator_messages = 0;  // those sent or received by the operator
  std::uint64_t connections = 0;        // of the operator
  double operator_bytes = 0;            // received by the operator
  double operator_cpu = 0;              // s
  double latency = 0;                   // s, from the first request until the operator has all reports
};

Gathered gather(Gathering way, const GatherParams& params);

}  // namespace bsp::sim::exchange
