/* Collectives, blocking and nonblocking, in each superstep. */
#include "check.h"

enum { kMax = 16 };

static int rank, size;

static void blocking(int s) {
  int sum = -1, scan = -1, all[kMax], one[kMax], counts[kMax], places[kMax];
  int value = rank + s;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size * (size - 1) / 2 + size * s);
  MPI_Reduce(rank == s % size ? MPI_IN_PLACE : &value, &value, 1, MPI_INT, MPI_MAX, s % size, MPI_COMM_WORLD);
  CHECK(rank != s % size || value == size - 1 + s);
  value = rank + s;
  MPI_Scan(&value, &scan, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(scan == rank * (rank + 1) / 2 + (rank + 1) * s);
  MPI_Exscan(&value, &scan, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(rank == 0 || scan == rank * (rank - 1) / 2 + rank * s);
  int from_root = rank == s % size ? 1000 + s : -1;
  MPI_Bcast(&from_root, 1, MPI_INT, s % size, MPI_COMM_WORLD);
  CHECK(from_root == 1000 + s);
  MPI_Allgather(&value, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) CHECK(all[i] == i + s);
  MPI_Gather(&value, 1, MPI_INT, one, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < size && rank == 0; ++i) CHECK(one[i] == i + s);
  for (int i = 0; i < size; ++i) one[i] = 7 * i + s;
  MPI_Scatter(one, 1, MPI_INT, &from_root, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  CHECK(from_root == 7 * rank + s);
  for (int i = 0; i < size; ++i) one[i] = 100 * rank + i + s;
  MPI_Alltoall(one, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) CHECK(all[i] == 100 * i + rank + s);
  for (int i = 0; i < size; ++i) counts[i] = 1, places[i] = size - 1 - i;
  MPI_Allgatherv(&value, 1, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) CHECK(all[size - 1 - i] == i + s);
  MPI_Alltoallv(one, counts, places, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) CHECK(all[size - 1 - i] == 100 * i + (size - 1 - rank) + s);
  MPI_Datatype types[kMax];
  for (int i = 0; i < size; ++i) types[i] = MPI_INT, places[i] = 4 * i;
  MPI_Alltoallw(one, counts, places, types, all, counts, places, types, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) CHECK(all[i] == 100 * i + rank + s);
  for (int i = 0; i < size; ++i) one[i] = rank + i;
  MPI_Reduce_scatter_block(one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size * (size - 1) / 2 + size * rank);
  MPI_Reduce_scatter(one, &sum, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size * (size - 1) / 2 + size * rank);
}

static void nonblocking(int s) {
  int value = rank + s, from_root = rank == 0 ? s : -1, sum = -1, all[kMax], out[kMax], from[kMax];
  int counts[kMax], places[kMax];
  MPI_Datatype types[kMax];
  MPI_Request requests[6];
  for (int i = 0; i < size; ++i) out[i] = 100 * rank + i + s, counts[i] = 1, places[i] = 4 * i, types[i] = MPI_INT;
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
  MPI_Ibcast(&from_root, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
  MPI_Iallgather(&value, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &requests[3]);
  MPI_Ialltoallw(out, counts, places, types, from, counts, places, types, MPI_COMM_WORLD, &requests[4]);
  for (int i = 0; i < size; ++i) types[i] = MPI_CHAR; /* the shim must have kept its own translation */
  for (int i = 0; i < size; ++i) types[i] = MPI_INT;
  requests[5] = MPI_REQUEST_NULL;
  MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
  CHECK(from_root == s && sum == size * (size - 1) / 2 + size * s);
  for (int i = 0; i < size; ++i) CHECK(all[i] == i + s && from[i] == 100 * i + rank + s);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size <= kMax);
  for (int s = 0; going_on(s, supersteps(argc, argv)); ++s) {
    blocking(s);
    nonblocking(s);
    edge();
  }
  MPI_Finalize();
  printf("ok collectives\n");
  return 0;
}
