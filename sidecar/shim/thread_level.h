// What MPI_Init does for several threads and MPI_Session_init leaves undone.
#pragma once

namespace bsp::shim {

// Before MPI_Session_init. Ends the process with a message if the MPI library can't have several threads in a session.
void set_thread_level(int level);
// After it.
void add_world_to_pml();

}  // namespace bsp::shim
