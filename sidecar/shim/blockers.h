// What prevents this rank from moving now: "" or a phrase that names it, such as "a pending request (MPI_Isend)".
#pragma once

#include <atomic>
#include <string>

namespace bsp::shim {

// Live objects that pass through to MPI unchanged and can't be recreated in another epoch.
struct LiveObjects {
  std::atomic<int> sessions{0};
  std::atomic<int> messages{0};  // matched by a probe, not received
};
extern LiveObjects live_objects;

std::string blocker();

}  // namespace bsp::shim
