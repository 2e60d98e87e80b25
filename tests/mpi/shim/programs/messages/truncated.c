/* Messages that are too long for their receive. The error handler returns, comes to edges, or leaves the call by longjmp: the messages are
 * received all the same, so that the ranks may move. */
#include <setjmp.h>

#include "check.h"

enum { kLong = 5, kCalls = 11, kHandlers = 3 };

static int rank, size, left, right, errors = 0;
static jmp_buf back;

static void goes_on(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++errors;
}

static void comes_to_edges(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++errors;
  for (int i = 0; i < 5; ++i) edge();
}

static void leaves(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++errors;
  longjmp(back, 1);
}

/* What the call returned, MPI_SUCCESS if it didn't return. */
static int receive(int call, MPI_Comm comm) {
  static int out[kLong], in[2]; /* static: nothing of this frame may be asked for after a longjmp */
  static MPI_Request requests[2];
  static MPI_Status statuses[2];
  static MPI_Message message;
  int index = 0, many = 0, flag = 0, rc = MPI_SUCCESS;
  for (int i = 0; i < kLong; ++i) out[i] = rank;
  if (setjmp(back) != 0) return MPI_SUCCESS;
  if (call < 7) {
    MPI_Irecv(&in[0], 1, MPI_INT, left, 1, comm, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, left, 2, comm, &requests[1]);
  }
  if (call < 10) MPI_Send(out, kLong, MPI_INT, right, 1, comm);
  if (call < 7) MPI_Send(out, 1, MPI_INT, right, 2, comm), MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  switch (call) {
    case 0:
      return MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    case 1:
      while (!flag) rc = MPI_Test(&requests[0], &flag, &statuses[0]);
      return rc;
    case 2:
      return MPI_Waitall(2, requests, statuses);
    case 3:
      return MPI_Waitany(2, requests, &index, &statuses[0]);
    case 4:
      return MPI_Waitsome(2, requests, &many, (int[2]){0}, statuses);
    case 5:
      while (!flag) rc = MPI_Testany(2, requests, &index, &flag, &statuses[0]);
      return rc;
    case 6:
      while (!flag && rc == MPI_SUCCESS) rc = MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
      return rc;
    case 7:
      return MPI_Recv(in, 1, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE);
    case 8:
      return MPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &statuses[0]);
    case 9:
      MPI_Mprobe(left, 1, comm, &message, MPI_STATUS_IGNORE);
      return MPI_Mrecv(in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    default:
      return MPI_Sendrecv(out, kLong, MPI_INT, right, 1, in, 1, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Comm_errhandler_function* const functions[kHandlers] = {goes_on, comes_to_edges, leaves};
  MPI_Comm comms[kHandlers];
  for (int i = 0; i < kHandlers; ++i) {
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    MPI_Comm_create_errhandler(functions[i], &handler);
    MPI_Comm_set_errhandler(comms[i], handler);
    MPI_Errhandler_free(&handler);
  }
  static int s;
  for (s = 0; going_on(s, supersteps(argc, argv)); ++s) {
    const int how = s % kHandlers, before = errors;
    const int rc = receive(s / kHandlers % kCalls, comms[how]);
    CHECK(errors == before + 1 && (rc != MPI_SUCCESS) == (how != 2));
    edge();
  }
  MPI_Finalize();
  printf("ok truncated\n");
  return 0;
}
