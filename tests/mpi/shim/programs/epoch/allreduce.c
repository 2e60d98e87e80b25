/* Supersteps that end with MPI_Allreduce: for BSP_SUPERSTEP=MPI_Allreduce:5. */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 5 * n; ++i) {
    int value = rank + i, sum = -1;
    if (i % 5 == 0) MPI_Barrier(MPI_COMM_WORLD); /* not an edge here */
    usleep(300);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2 + size * i);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_SELF); /* not all ranks */
    CHECK(sum == value);
  }
  MPI_Finalize();
  printf("ok allreduce\n");
  return 0;
}
