// The MPI library beneath us: its PMPI_* functions and predefined objects, found with dlsym in that library:
// the process's first PMPI_* functions are our own.
//
// The shim is preloaded into every process that bsp-init starts, also into a shell that never sees
// MPI, so it must load without libmpi: nothing here may be an undefined symbol. Never use MPI_COMM_WORLD
// and its like inside the shim (they name data of libmpi): use `pre`.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>

#include "real_functions.gen.h"  // BSP_REAL_FUNCTIONS(X): every MPI_* function of mpi.h

namespace bsp::shim {

// NOLINTBEGIN(readability-identifier-naming): members are called as MPI calls them.
struct RealFunctions {
#define BSP_MEMBER(name) decltype(&PMPI_##name) name;
  BSP_REAL_FUNCTIONS(BSP_MEMBER)
#undef BSP_MEMBER
};
// NOLINTEND

struct Predefined {
  MPI_Comm comm_world, comm_self, comm_null;
  MPI_Group group_null, group_empty;
  MPI_Datatype datatype_null, byte, int32, int64;
  MPI_Op op_null, sum, min;
  MPI_Request request_null;
  MPI_Info info_null, info_env;
  MPI_Errhandler errhandler_null, errors_are_fatal, errors_abort;
  MPI_Message message_null, message_no_proc;
};

extern RealFunctions real;
extern Predefined pre;
extern bool real_loaded;

// Finds libmpi among the libraries of the process and fills `real` and `pre`. False if it isn't there.
bool load_real();

// A symbol of libmpi or of a library beneath it, but for PMPI_*; nullptr if there is none.
void* find_in_mpi(const char* symbol);

// A function of libmpi that the shim replaces.
void* find_real(const char* symbol);

// Ends the process with a message if MPI refused what it must do.
void must(int rc, const char* what);

// Ends the process with a message if the MPI library is not Open MPI >= 5.
void require_open_mpi_5();
int open_mpi_major();  // 5 for 5.0.7; known once it was required
int open_mpi_minor();

}  // namespace bsp::shim
