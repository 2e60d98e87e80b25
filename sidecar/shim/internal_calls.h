// Open MPI calls MPI itself: ROMIO, collectives and windows use PMPI_Type_commit, PMPI_Op_create, PMPI_Isend and a hundred more.
//
// By the rules of dynamic symbols these calls would come to us, as the program's do, and Open MPI would get handles of ours into
// its own structures, which nobody translates. So the slots through which libmpi and its plugins call are pointed at libmpi's own
// functions, as libmpi itself would have them without us. A call of the program costs nothing more, and who calls doesn't have to
// be guessed from a return address, which a tail call hides. Libraries above MPI (Fortran's bindings, Java's) stay with us.
#pragma once

namespace bsp::shim {

// Once `real` is filled in. Plugins that MPI loads later are treated as they come.
void bind_internal_calls();

}  // namespace bsp::shim
