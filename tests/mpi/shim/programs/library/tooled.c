/* A program whose calls a preloaded tool counts (tool/tool.c): it says itself how many there are. */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, version, subversion, n = supersteps(argc, argv), s;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_version(&version, &subversion);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  for (s = 0; going_on(s, n); ++s) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copy);
    CHECK(sum == size * (size - 1) / 2);
    edge();
  }
  MPI_Comm_free(&copy);
  MPI_Finalize();
  printf("ok tooled %d\n", s);
  return 0;
}
