/* MPI has no room for one more communicator: the error of MPI_Comm_idup comes with its request, and the program goes on with the
 * communicators that it has. Each rank completes the request in another way; once only, since Open MPI 5.0.7 itself dies of a second
 * such error. */
#include "check.h"

enum { kMost = 1 << 20, kWays = 7 };
static MPI_Comm made[kMost];

/* Completes a request in one of the ways of MPI; returns its error. */
static int complete(MPI_Request* request, int way) {
  int done = 0, index = -1, code = MPI_SUCCESS;
  MPI_Status status;
  status.MPI_ERROR = MPI_SUCCESS;
  while (!done) {
    done = 1;
    switch (way) {
      case 0:
        code = MPI_Wait(request, &status);
        break;
      case 1:
        code = MPI_Test(request, &done, &status);
        break;
      case 2:
        code = MPI_Waitall(1, request, &status);
        break;
      case 3:
        code = MPI_Testall(1, request, &done, &status);
        break;
      case 4:
        code = MPI_Waitany(1, request, &index, &status);
        break;
      case 5:
        code = MPI_Waitsome(1, request, &done, &index, &status);
        break;
      case 6:
        code = MPI_Testsome(1, request, &done, &index, &status);
        break;
      default:
        CHECK(!"a way");
    }
    if (code != MPI_SUCCESS) done = 1;
  }
  return code == MPI_ERR_IN_STATUS ? status.MPI_ERROR : code;
}

static int idup(MPI_Comm* comm, int way) {
  MPI_Request request;
  const int code = MPI_Comm_idup(MPI_COMM_SELF, comm, &request);
  return code != MPI_SUCCESS ? code : complete(&request, way);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int count = 0, size = 0, rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  while (count < kMost && idup(&made[count], rank % kWays) == MPI_SUCCESS) ++count;
  CHECK(count > 1000 && count < kMost);
  for (int i = 3; i < count; ++i) CHECK(MPI_Comm_free(&made[i]) == MPI_SUCCESS);
  for (int s = 0; going_on(s, n); ++s) {
    for (int way = 0; way < kWays; ++way) {
      MPI_Comm one;
      CHECK(idup(&one, way) == MPI_SUCCESS);
      CHECK(MPI_Comm_free(&one) == MPI_SUCCESS);
    }
    for (int i = 0; i < 3; ++i) CHECK(MPI_Comm_size(made[i], &size) == MPI_SUCCESS && size == 1);
    edge();
  }
  for (int i = 0; i < 3; ++i) MPI_Comm_free(&made[i]);
  MPI_Finalize();
  puts("ok exhausted");
  return 0;
}
