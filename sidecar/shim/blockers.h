// What prevents this rank from moving now.
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

struct Blocker {
  std::string reason;    // a phrase that names it, such as "a pending request (MPI_Isend)"; "" if there is none
  bool passing = false;  // it may end if the rank waits
};
Blocker blocker();

}  // namespace bsp::shim
