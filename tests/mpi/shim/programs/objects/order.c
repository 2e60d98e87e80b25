/* Communicators that ranks create in different orders: begun by MPI_Comm_idup on one parent on one rank and on another
 * elsewhere, or by MPI_Comm_idup before or after MPI_Comm_create_group. Each must be the same communicator on all its
 * ranks in every epoch. */
#include "check.h"

enum { kMade = 6 };

static int rank, size;

/* A value that only the right communicator delivers. */
static void ring(MPI_Comm comm, int mark) {
  const int out = 100 * mark + rank;
  int in = -1;
  MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0, comm,
               MPI_STATUS_IGNORE);
  CHECK(in == 100 * mark + (rank + size - 1) % size);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm parents[kMade], made[kMade], of_group, side, across;
  MPI_Request requests[kMade], request;
  MPI_Group all;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  for (int i = 0; i < kMade; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]);
  for (int i = 0; i < kMade; ++i) { /* rank 1 begins where rank 0 ends */
    const int k = rank % 2 == 0 ? i : kMade - 1 - i;
    MPI_Comm_idup(parents[k], &made[k], &requests[k]);
  }
  MPI_Waitall(kMade, requests, MPI_STATUSES_IGNORE);
  MPI_Comm late;
  if (rank % 2 == 0) {
    MPI_Comm_create_group(parents[0], all, 0, &of_group);
    MPI_Comm_idup(parents[1], &late, &request);
  } else {
    MPI_Comm_idup(parents[1], &late, &request);
    MPI_Comm_create_group(parents[0], all, 0, &of_group);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Group_free(&all);
  /* Intercommunicators, their numbers agreed across. */
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &across);
  MPI_Comm both[2];
  for (int i = 0; i < 2; ++i) {
    const int k = rank % 2 == 0 ? i : 1 - i;
    MPI_Comm_idup(k == 0 ? across : parents[0], &both[k], &requests[k]);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);

  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    for (int i = 0; i < kMade; ++i) ring(made[i], i), ring(parents[i], 50 + i);
    ring(of_group, 10), ring(late, 11), ring(both[1], 12);
    int sum = 0, others = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both[0]);
    for (int r = 0; r < size; ++r) others += r % 2 != rank % 2 ? r : 0;
    CHECK(sum == others);
    edge();
  }
  MPI_Finalize();
  printf("ok order\n");
  return 0;
}
