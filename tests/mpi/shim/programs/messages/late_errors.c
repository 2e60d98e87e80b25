/* Receives that fail while the program is elsewhere, at a gate perhaps: the call that completes them returns the error
 * and calls the error handler, once. */
#include "check.h"

static int handled = 0, class_handled = MPI_SUCCESS;
static MPI_Comm handled_on = MPI_COMM_NULL;
static void on_error(MPI_Comm* comm, int* code, ...) {
  ++handled;
  MPI_Error_class(*code, &class_handled);
  handled_on = *comm;
}

static int class_of(int code) {
  int class = -1;
  MPI_Error_class(code, &class);
  return class;
}

enum { kWait, kWaitany, kTestany, kWaitall, kTestall, kWaitsome, kTestsome, kIgnored, kWays };

/* The first of two receives has failed, the second has not. */
static void complete(int way, MPI_Request* requests) {
  MPI_Status statuses[2];
  int codes[2] = {MPI_SUCCESS, MPI_SUCCESS}, returned = MPI_SUCCESS, indices[2], done = 0;
  const int all = way == kWaitall || way == kTestall || way == kIgnored;
  memset(statuses, 0xff, sizeof statuses);
  for (int left = 2; left > 0; left -= done) {
    MPI_Status* const some = &statuses[2 - left];
    int index = -1, rc = MPI_SUCCESS;
    if (way == kWait) rc = MPI_Wait(&requests[index = 2 - left], some), done = 1;
    if (way == kWaitany) rc = MPI_Waitany(2, requests, &index, some), done = 1;
    if (way == kTestany) rc = MPI_Testany(2, requests, &index, &done, some);
    if (way == kWaitall) rc = MPI_Waitall(2, requests, statuses), done = 2;
    if (way == kIgnored) rc = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), done = 2;
    if (way == kTestall && (rc = MPI_Testall(2, requests, &done, statuses), done)) done = 2;
    if (way == kWaitsome) rc = MPI_Waitsome(2, requests, &done, indices, some);
    if (way == kTestsome) rc = MPI_Testsome(2, requests, &done, indices, some);
    if (rc != MPI_SUCCESS) returned = rc;
    if (done == 0) continue;
    if (way == kWait || way == kWaitany || way == kTestany) codes[index] = rc;
    for (int i = 0; i < done && (way == kWaitsome || way == kTestsome) && rc != MPI_SUCCESS; ++i)
      codes[indices[i]] = some[i].MPI_ERROR;
  }
  if (all) CHECK(class_of(returned) == MPI_ERR_IN_STATUS);
  if (way == kWaitsome || way == kTestsome) CHECK(class_of(returned) == MPI_ERR_IN_STATUS);
  for (int i = 0; i < 2 && all && way != kIgnored; ++i) codes[i] = statuses[i].MPI_ERROR;
  CHECK(way == kIgnored || class_of(codes[0]) == MPI_ERR_TRUNCATE);
  CHECK(codes[1] == MPI_SUCCESS);
  for (int i = 0; i < 2; ++i) CHECK(requests[i] == MPI_REQUEST_NULL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  for (int s = 0; going_on(s, n); ++s) {
    const int out[2] = {rank, s};
    int in[kWays][2];
    MPI_Request requests[kWays][2], dropped;
    for (int way = 0; way < kWays; ++way)
      for (int i = 0; i < 2; ++i) MPI_Irecv(&in[way][i], 1, MPI_INT, left, 2 * way + i, comm, &requests[way][i]);
    MPI_Irecv(&handled, 0, MPI_INT, left, 2 * kWays, comm, &dropped);
    MPI_Request_free(&dropped);
    for (int way = 0; way < kWays; ++way) {
      MPI_Send(out, 2, MPI_INT, right, 2 * way, comm);
      MPI_Send(out, 1, MPI_INT, right, 2 * way + 1, comm);
    }
    MPI_Send(out, 1, MPI_INT, right, 2 * kWays, comm);
    edge();
    CHECK(handled == 0);
    for (int way = 0; way < kWays; ++way) {
      complete(way, requests[way]);
      CHECK(handled == 1 && class_handled == MPI_ERR_TRUNCATE && handled_on == comm && in[way][1] == left);
      handled = 0;
    }
    MPI_Errhandler now;
    MPI_Comm_get_errhandler(comm, &now);
    CHECK(now != MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&now);
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
  printf("ok late_errors\n");
  return 0;
}
