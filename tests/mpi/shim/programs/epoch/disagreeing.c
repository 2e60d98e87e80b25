/* Ranks that don't call the same collectives. Open MPI doesn't notice, as there is nothing to send, and the program is right
 * otherwise. */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  int rank, s = 0, word = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (; going_on(s, n); ++s) {
    usleep(1000);
    if (rank == 0)
      MPI_Bcast(&word, 0, MPI_INT, 0, MPI_COMM_WORLD);
    else
      MPI_Allreduce(MPI_IN_PLACE, &word, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  printf("ok disagreeing %d\n", s);
  return 0;
}
