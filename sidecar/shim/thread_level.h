// What MPI_Init does for threads and MPI_Session_init omits.
#pragma once

namespace bsp::shim {

// Call before MPI_Session_init. Exits with a message if the MPI library doesn't support threads in a session.
void set_thread_level(int level);
// Call after MPI_Session_init.
void add_world_to_pml();

}  // namespace bsp::shim
