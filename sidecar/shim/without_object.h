// Errors that belong to no communicator, window or file, such as an invalid handle.
//
// MPI raises them on MPI_COMM_SELF. In a session Open MPI doesn't have that and uses its initial error handler; the
// one installed here forwards to the program's MPI_COMM_SELF.
#pragma once

namespace bsp::shim {

void route_errors_to_self();

}  // namespace bsp::shim
