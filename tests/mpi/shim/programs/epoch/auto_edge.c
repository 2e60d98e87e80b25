/* A program as users write them, for BSP_SUPERSTEP=Auto: it reads its input by many short broadcasts, then iterates, with two
 * reductions in an iteration and no barrier anywhere. */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 300; ++i) {
    int value = rank == 0 ? i : -1;
    usleep(1000);
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(value == i);
  }
  for (int s = 0; going_on(s, supersteps(argc, argv)); ++s) {
    double norm = rank;
    usleep(10000);
    MPI_Allreduce(MPI_IN_PLACE, &norm, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(norm == size * (size - 1) / 2);
  }
  MPI_Finalize();
  printf("ok auto_edge\n");
  return 0;
}
