/* Ranks in teams of two, which sum what they have. */
#include "check.h"

enum { kNumbers = 5000 };

int main(int argc, char** argv) {
  static double mine[kNumbers], sum[kNumbers];
  int rank;
  MPI_Comm team;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &team);
  const int n = supersteps(argc, argv);
  for (int s = 0; going_on(s, n); ++s) {
    for (int i = 0; i < kNumbers; ++i) mine[i] = rank + i + s;
    MPI_Allreduce(mine, sum, kNumbers, MPI_DOUBLE, MPI_SUM, team);
    CHECK(sum[7] == 2 * (rank / 2 * 2 + 7 + s) + 1);
    edge();
  }
  MPI_Comm_free(&team);
  printf("ok teams\n");
  MPI_Finalize();
  return 0;
}
