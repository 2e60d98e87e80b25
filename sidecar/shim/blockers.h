// What keeps this rank from being moved now: "" or a phrase that names it, such as "an open RMA window".
#pragma once

#include <atomic>
#include <string>

namespace bsp::shim {

// Objects that pass through to MPI unchanged and can't be built again in another epoch. Counted while
// they live.
struct LiveObjects {
  std::atomic<int> windows{0};
  std::atomic<int> files{0};
  std::atomic<int> sessions{0};
  std::atomic<int> messages{0};  // matched by a probe, not received
};
extern LiveObjects live_objects;

std::string blocker();

}  // namespace bsp::shim
