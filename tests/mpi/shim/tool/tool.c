/* A tool that a user preloads: it intercepts some MPI functions, one of which the shim leaves to MPI, counts, calls PMPI
 * or the next function of that name, and reports at the end. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int inits = 0, barriers = 0, versions = 0, copies = 0;

int MPI_Init(int* argc, char*** argv) {
  ++inits;
  return PMPI_Init(argc, argv);
}

int MPI_Barrier(MPI_Comm comm) {
  ++barriers;
  return PMPI_Barrier(comm);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  static int (*next)(MPI_Comm, MPI_Comm*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "MPI_Comm_dup");
  ++copies;
  return next(comm, made);
}

int MPI_Get_version(int* version, int* subversion) {
  ++versions;
  return PMPI_Get_version(version, subversion);
}

int MPI_Finalize(void) {
  int rank = -1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fprintf(stderr, "tool: rank %d saw MPI_Init %d, MPI_Barrier %d, MPI_Get_version %d, MPI_Comm_dup %d\n", rank, inits,
          barriers, versions, copies);
  return PMPI_Finalize();
}
