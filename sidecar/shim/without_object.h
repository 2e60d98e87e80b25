// Errors that belong to no communicator, window or file, such as an invalid handle.
//
// MPI 4 raises them on MPI_COMM_SELF; MPI 3, and Open MPI 5.0 by default (its parameter mpi_compat_mpi3), on
// MPI_COMM_WORLD. In a session Open MPI has neither and uses its initial error handler; the one installed here forwards
// to the program's.
#pragma once

namespace bsp::shim {

void route_errors_without_object();

}  // namespace bsp::shim
