// Attributes of communicators, datatypes and windows, implemented here; MPI never sees them.
//
// An attribute is a value that the program attaches to a handle and that its own callbacks copy and delete, so an
// epoch change doesn't affect it. Predefined keys such as MPI_TAG_UB remain MPI's, except those of windows, to whose
// values the program may keep pointers.
#pragma once

#include "sidecar/shim/handles/handles.h"

namespace bsp::shim {

// Calls the copy callbacks for a duplicate. On error, copies nothing and returns the error.
int copy_attributes(MPI_Comm from, MPI_Comm to);
int copy_attributes(MPI_Datatype from, MPI_Datatype to);
// Calls the delete callbacks in reverse order of setting and forgets the handle.
int delete_attributes(MPI_Comm comm);
int delete_attributes(MPI_Datatype type);
int delete_attributes(MPI_Win window);

}  // namespace bsp::shim
