/* Linked in front of lattice_boltzmann (ld's --wrap) to stamp (stamp.h) into the file STAMPS, so that the program
 * itself is the one that users have. It stamps at both ends of every exchange with its neighbours and of every
 * barrier, several times in a superstep of 50 ms, and where a rank leaves the barrier at which it moved. It never
 * stamps within a barrier, because a rank stopped there must not hold the file open. */
#include "stamp.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int __real_MPI_Barrier(MPI_Comm comm);
int __real_MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]);

static long superstep = 0;

/* A program that doesn't stamp would pass every audit. */
static void note(void) {
  static const char* file = NULL;
  static int rank = -1;
  if (file == NULL) {
    file = getenv("STAMPS");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  if (file != NULL && stamp(file, rank, NULL, superstep) == 0) return;
  perror(file != NULL ? file : "STAMPS");
  exit(3);
}

int __wrap_MPI_Barrier(MPI_Comm comm) {
  note();
  const int result = __real_MPI_Barrier(comm);
  ++superstep;
  note();
  return result;
}

int __wrap_MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  note();
  const int result = __real_MPI_Waitall(count, requests, statuses);
  note();
  return result;
}
