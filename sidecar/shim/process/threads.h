// Which threads are inside MPI. With MPI_THREAD_MULTIPLE, one that closes the epoch keeps the others out meanwhile.
#pragma once

#include <cstdint>

namespace bsp::shim {

struct ThreadState {
  int depth = 0;                 // nested MPI calls: user callbacks may call MPI
  std::uint64_t call_began = 0;  // ticks; with MPI_THREAD_MULTIPLE only
};
extern constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

// The first waits while another thread closes the epoch.
void enter_threaded();
void leave_threaded();

// For a thread that waits in an MPI call, in none of MPI's own: while another thread closes the epoch, it is out of MPI.
void step_aside();

// Keeps other threads out of MPI. True if none is inside after a moment: most calls are short, or step aside, but a collective may wait
// for a rank that is already here. A gate's first moment is long, for a thread without a processor; each further one half as long.
bool keep_others_out_of_mpi(std::uint64_t gate);
void let_others_into_mpi();

}  // namespace bsp::shim
