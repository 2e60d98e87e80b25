// What Open MPI's two file components (ompio and ROMIO) keep in static variables, as if MPI were opened once.
#pragma once

namespace bsp::shim {

// While the session is open and MPI_COMM_SELF is lent (predefined_self.h).
void end_romio();
// After the session has been closed.
void forget_progress_of_files();

}  // namespace bsp::shim
