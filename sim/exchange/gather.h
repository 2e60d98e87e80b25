// How the reports of all ranks get to the operator: flat (it asks every rank) or by way of Set Managers (one rank of
// each Set asks the others of its Set). One round, everybody idle, all requests sent at once; simulated message by
// message.
//
// Every node is one thread that handles messages one after the other: a message costs it a fixed time and a time for
// each byte of JSON (sending and receiving alike), and its network interface takes bytes at a rate. Between nodes there
// is a latency.
#pragma once

#include <cstdint>

namespace bsp::sim::exchange {

enum class Gathering {
  kFlat,       // operator -> rank
  kManagers,   // operator -> Set Manager -> rank; the manager passes the reports on whole, as sidecars do (wire.h,
               // setReport)
  kCondensed,  // the same, and the manager says of each rank only what a PM list needs: rank, target, PM
};

struct GatherParams {
  std::uint32_t ranks = 1000;
  std::uint32_t sets = 64;
  double latency_between = 200e-6;  // s, operator <-> any rank
  double latency_within = 50e-6;    // s, inside a Set
  double message = 20e-6;           // s of CPU for a message, either end
  double byte = 10e-9;              // s of CPU for a byte, either end
  double interface = 1.25e9;        // bytes/s
  double report_bytes = 0;          // of one rank
  double request_bytes = 100;       // of one rank's part in a request
  double condensed_bytes = 24;      // of one rank
};

struct Gathered {
  std::uint64_t messages = 0;           // all, requests and answers
  std::uint64_t operator_messages = 0;  // of them: sent or received by the operator
  std::uint64_t connections = 0;        // of the operator
  double operator_bytes = 0;            // received by it
  double operator_cpu = 0;              // s
  double latency = 0;                   // s, from the first request until the operator has all
};

Gathered gather(Gathering way, const GatherParams& params);

}  // namespace bsp::sim::exchange
