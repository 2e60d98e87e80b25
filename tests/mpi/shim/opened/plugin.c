/* Linked with MPI, and opened with RTLD_DEEPBIND. */
#include <mpi.h>

int sum_of_ones(MPI_Comm comm) {
  const int one = 1;
  int sum = 0;
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &copy);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy);
  MPI_Comm_free(&copy);
  return sum;
}
