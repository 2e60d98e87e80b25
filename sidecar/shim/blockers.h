// What prevents this rank from moving now: "" or a phrase that names it, such as "an open MPI file".
#pragma once

#include <atomic>
#include <string>

namespace bsp::shim {

// Live objects that pass through to MPI unchanged and can't be recreated in another epoch.
struct LiveObjects {
  std::atomic<int> files{0};
  std::atomic<int> sessions{0};
  std::atomic<int> messages{0};  // matched by a probe, not received
};
extern LiveObjects live_objects;

std::string blocker();

}  // namespace bsp::shim
