// What MPI_Init does for threads and MPI_Session_init omits.
#pragma once

namespace bsp::shim {

// Call before MPI_Session_init. Exits with a message if the MPI library doesn't support threads in a session.
void set_thread_level(int level);
// Call after MPI_Session_init.
void add_world_to_pml();
// Whether messages travel by Open MPI's pml "ob1".
bool uses_ob1();

}  // namespace bsp::shim
