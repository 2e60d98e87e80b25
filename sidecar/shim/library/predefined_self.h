// Provides MPI_COMM_SELF for Open MPI's internal uses of it.
//
// MPI_Reduce_local takes its collectives from the object ompi_mpi_comm_self, and shared file pointers open their
// files on it. Only MPI_Init fills in that object; with only sessions it is empty, and such a call crashes. While an
// epoch is open it is a copy of the epoch's own. In Open MPI 5.0 no other function that a program can call uses the
// world's objects without a handle, except to get an error handler (handled by without_object.h) or a flag that is
// false in both.
#pragma once

#include <mpi.h>

namespace bsp::shim {

void fill_predefined_self(MPI_Comm real_self);
void clear_predefined_self();

}  // namespace bsp::shim
