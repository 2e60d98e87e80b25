// Errors that belong to no communicator, window or file (an invalid handle, say).
//
// MPI raises them on MPI_COMM_SELF. In a session Open MPI doesn't have that and takes what it calls the initial
// error handler: ours leads to the program's MPI_COMM_SELF.
#pragma once

namespace bsp::shim {

void lead_errors_to_self();

}  // namespace bsp::shim
