/* An MPI-4 program that never calls MPI_Init: it has a session and makes its communicator from a process set. */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int initialized = -1;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 4;
  MPI_Initialized(&initialized);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "sessions.c", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (initialized || size < 2) {
    fprintf(stderr, "initialized %d, size %d\n", initialized, size);
    return 5;
  }
  for (int s = 0; s < n; ++s) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != size * (size - 1) / 2) return 6;
    usleep(1000);
    MPI_Barrier(comm);
  }
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  printf("ok sessions\n");
  return 0;
}
