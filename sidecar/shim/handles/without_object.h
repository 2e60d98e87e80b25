// Errors that belong to no communicator, window or file, such as an invalid handle.
//
// MPI 4 raises them on MPI_COMM_SELF; MPI 3, and Open MPI 5.0 by default (its parameter mpi_compat_mpi3), on
// MPI_COMM_WORLD. In a session Open MPI has neither and uses its initial error handler, which it doesn't tell the error's
// code. So the function that raises errors is replaced: it raises these on the program's communicator.
#pragma once

#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/export.h"

// Open MPI's own function, which raises every error: of an object by the object's handler, without one by none.
extern "C" BSP_EXPORT int ompi_errhandler_invoke(MPI_Errhandler handler, void* object, int kind, int code,
                                                 const char* where);

namespace bsp::shim {

// For an Open MPI in which that function can't be replaced: the program's handler is called with MPI_ERR_OTHER.
void route_errors_without_object();

// Whether MPI has raised an error in this process, on whatever object.
bool has_raised_error();

}  // namespace bsp::shim
