// What prevents this rank from moving now.
#pragma once

#include <atomic>
#include <string>

namespace bsp::shim {

// Sessions of the program's own. They pass through to MPI unchanged.
extern std::atomic<int> program_sessions;

struct Blocker {
  std::string reason;       // a phrase that names it, such as "a pending request (MPI_Isend)"; "" if there is none
  bool passing = false;     // it may end if the rank waits
  bool makes_comm = false;  // and a communicator is being made
  bool for_good = false;    // it lasts as long as the process
};
Blocker blocker();

}  // namespace bsp::shim
