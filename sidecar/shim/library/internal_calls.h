// Keeps Open MPI's internal calls of MPI inside Open MPI. ROMIO, collectives and windows call PMPI_Type_commit,
// PMPI_Op_create, PMPI_Isend and a hundred more.
//
// By the rules of dynamic symbol resolution these calls would arrive at the shim like the program's, and Open MPI
// would store virtual handles in its own structures, where nothing translates them. So the slots through which libmpi
// and its plugins call are redirected to libmpi's own functions, as they would be without the shim. This adds no cost
// to the program's calls, and the caller needn't be guessed from a return address, which a tail call hides. Libraries
// above MPI (the Fortran and Java bindings) keep calling the shim.
#pragma once

#include <string_view>

namespace bsp::shim {

// Call once `real` is filled in. Plugins that MPI loads later are rebound as they are loaded.
void bind_internal_calls();

// Whether the library of this file name is libmpi, one that it needs, or one of its plugins.
bool is_of_open_mpi(std::string_view name);

}  // namespace bsp::shim
