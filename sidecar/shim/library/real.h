// The underlying MPI library: its PMPI_* functions and predefined objects. They are looked up with dlsym in that
// library, because the first PMPI_* functions in the process are the shim's.
//
// The shim is preloaded into every process that bsp-init starts, including shells that never use MPI. So it must load
// without libmpi: nothing here may be an undefined symbol. Never use MPI_COMM_WORLD and other predefined objects in
// the shim (they name libmpi's data): use `pre`.
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
  MPI_Op op_null, sum, min, max;
  MPI_Request request_null;
  MPI_Info info_null, info_env;
  MPI_Errhandler errhandler_null, errors_are_fatal, errors_abort, errors_return;
  MPI_Win win_null;
  MPI_File file_null;
  MPI_Message message_null, message_no_proc;
};

extern RealFunctions real;
extern Predefined pre;

enum class Lookup { kWait, kUnlessBusy };

// Finds libmpi among the loaded libraries and fills in `real` and `pre`. False if it isn't loaded, or, if asked so, if
// another thread looks for it.
bool load_real(Lookup lookup = Lookup::kWait);

// A symbol of libmpi or of a library below it, other than PMPI_*; nullptr if there is none.
void* find_in_mpi(const char* symbol);

// A libmpi function that the shim replaces.
void* find_real(const char* symbol);

// Exits with a message if MPI returned an error that can't be handled.
void must(int rc, const char* what);

// Exits with a message if the MPI library isn't Open MPI >= 5.
void require_open_mpi_5();
int open_mpi_major();  // 5 for 5.0.7; known after require_open_mpi_5()
int open_mpi_minor();
int open_mpi_patch();

}  // namespace bsp::shim
