/* Open MPI's fault tolerance, by its MPIX and PMPIX names, with nothing failed: on communicators that are older than the epoch, and
 * on new ones. */
/* The second needs the first. */
/* clang-format off */
#include <mpi.h>
#include <mpi-ext.h>
/* clang-format on */

#include "check.h"

static void use(MPI_Comm comm, int s) {
  int rank, size, flag = -1, any = -1, failed = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  CHECK(MPIX_Comm_is_revoked(comm, &flag) == MPI_SUCCESS && !flag);
  MPI_Group group;
  CHECK(MPIX_Comm_get_failed(comm, &group) == MPI_SUCCESS);
  CHECK(MPI_Group_size(group, &failed) == MPI_SUCCESS && failed == 0);
  if (group != MPI_GROUP_EMPTY) MPI_Group_free(&group);
  CHECK(MPIX_Comm_ack_failed(comm, size, &any) == MPI_SUCCESS && any == 0);
  CHECK(MPIX_Comm_failure_ack(comm) == MPI_SUCCESS);
  CHECK(PMPIX_Comm_failure_get_acked(comm, &group) == MPI_SUCCESS);
  CHECK(MPI_Group_size(group, &failed) == MPI_SUCCESS && failed == 0);
  if (group != MPI_GROUP_EMPTY) MPI_Group_free(&group);
  flag = rank == 0 ? s | 4 : ~4;
  CHECK(MPIX_Comm_agree(comm, &flag) == MPI_SUCCESS && flag == (size > 1 ? s & ~4 : s | 4));
  MPI_Request request;
  flag = 6 + (rank == size - 1);
  CHECK(MPIX_Comm_iagree(comm, &flag, &request) == MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(flag == (size > 1 ? 6 : 7) && request == MPI_REQUEST_NULL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm copy, shrunk;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  CHECK(MPIX_Comm_shrink(copy, &shrunk) == MPI_SUCCESS);
  for (int s = 0; going_on(s, n); ++s) {
    use(MPI_COMM_WORLD, s);
    use(MPI_COMM_SELF, s);
    use(copy, s);
    use(shrunk, s);
    int sum = 0, same = -1;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, shrunk);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Comm_compare(copy, shrunk, &same);
    CHECK(same == MPI_CONGRUENT);
    if (s <
        20) { /* revoked and gone before the edge; without --with-ft Open MPI can't shrink it, even without the shim */
      MPI_Comm revoked;
      MPI_Comm_dup(shrunk, &revoked);
      MPI_Comm_set_errhandler(revoked, MPI_ERRORS_RETURN);
      CHECK(MPIX_Comm_revoke(revoked) == MPI_SUCCESS);
      int flag = 0, class = 0;
      CHECK(PMPIX_Comm_is_revoked(revoked, &flag) == MPI_SUCCESS && flag);
      MPI_Error_class(MPI_Barrier(revoked), &class);
      CHECK(class == MPIX_ERR_REVOKED);
      MPI_Comm_free(&revoked);
    }
    edge();
  }
  MPI_Comm_free(&shrunk);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  printf("ok extensions\n");
  return 0;
}
