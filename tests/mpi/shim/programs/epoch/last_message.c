/* In every other superstep, beginning with the first, rank 1 receives a message right before the edge. */
#include "check.h"

enum { kBytes = 40000 };

int main(int argc, char** argv) {
  static char message[kBytes];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int n = supersteps(argc, argv);
  for (int s = 0; going_on(s, n); ++s) {
    if (s % 2 == 0 && rank == 0) MPI_Send(message, kBytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    usleep(1000);
    if (s % 2 == 0 && rank == 1) MPI_Recv(message, kBytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  printf("ok last_message\n");
  MPI_Finalize();
  return 0;
}
