// MPI_COMM_SELF for those inside Open MPI who use it without being asked to.
//
// MPI_Reduce_local takes the collectives of the object ompi_mpi_comm_self, shared file pointers open their files on it.
// Only MPI_Init fills that object in; where only sessions are open it is empty, and such a call crashes. While an epoch is
// open it is a copy of the epoch's own. Nothing else in Open MPI 5.0 that a program can call uses the world's objects
// without a handle but to ask for an error handler (without_object.h answers) or a flag that is false in both.
#pragma once

#include <mpi.h>

namespace bsp::shim {

void lend_self(MPI_Comm real_self);
void take_self_back();

}  // namespace bsp::shim
