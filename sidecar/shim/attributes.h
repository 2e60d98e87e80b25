// Attributes of communicators and datatypes: ours altogether, MPI never sees them.
//
// They are values that the program hangs on a handle, copied and deleted by its own functions with
// its own handles; an epoch changes nothing about them. Window attributes and the predefined keys
// (MPI_TAG_UB and its like) are MPI's.
#pragma once

#include "sidecar/shim/handles.h"

namespace bsp::shim {

// Calls the copy functions for a duplicate. On an error nothing is copied and the error is returned.
int copy_attributes(MPI_Comm from, MPI_Comm to);
int copy_attributes(MPI_Datatype from, MPI_Datatype to);
// Calls the delete functions, youngest attribute first, and forgets the handle.
int delete_attributes(MPI_Comm comm);
int delete_attributes(MPI_Datatype type);

}  // namespace bsp::shim
