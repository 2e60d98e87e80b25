/* Point-to-point communication in all its variants, in each superstep. */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  enum { kMany = 40000 };
  double *out = malloc(kMany * sizeof *out), *in = malloc(kMany * sizeof *in);
  char* attached = malloc(1 << 20);
  MPI_Buffer_attach(attached, 1 << 20);
  for (int s = 0; going_on(s, n); ++s) {
    int token = rank * 1000 + s, got = -1, count = -1, flag = 0;
    MPI_Status status;
    MPI_Request requests[4];

    MPI_Sendrecv(&token, 1, MPI_INT, right, 1, &got, 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK(got == left * 1000 + s && status.MPI_SOURCE == left && status.MPI_TAG == 1);

    got = token;
    MPI_Sendrecv_replace(&got, 1, MPI_INT, right, 2, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == left * 1000 + s);

    /* Nonblocking, large, wildcards. */
    for (int i = 0; i < kMany; ++i) out[i] = rank + s + i;
    MPI_Irecv(in, kMany, MPI_DOUBLE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, kMany, MPI_DOUBLE, right, 3, MPI_COMM_WORLD, &requests[1]);
    requests[2] = MPI_REQUEST_NULL;
    MPI_Status statuses[3];
    MPI_Waitall(3, requests, statuses);
    MPI_Get_count(&statuses[0], MPI_DOUBLE, &count);
    CHECK(count == kMany && statuses[0].MPI_SOURCE == left && statuses[0].MPI_TAG == 3);
    CHECK(in[0] == left + s && in[kMany - 1] == left + s + kMany - 1);
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);

    /* Synchronous, buffered, ready; Test, Waitany, Waitsome, Testall. */
    int a = -1, b = -1, c = -1;
    MPI_Irecv(&a, 1, MPI_INT, left, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&b, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&c, 1, MPI_INT, left, 6, MPI_COMM_WORLD, &requests[2]);
    MPI_Issend(&token, 1, MPI_INT, right, 4, MPI_COMM_WORLD, &requests[3]);
    MPI_Bsend(&token, 1, MPI_INT, right, 5, MPI_COMM_WORLD);
    MPI_Sendrecv(NULL, 0, MPI_INT, left, 7, NULL, 0, MPI_INT, right, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Rsend(&token, 1, MPI_INT, right, 6, MPI_COMM_WORLD);
    int index = -1, done = 0, indices[4];
    MPI_Waitany(4, requests, &index, &status);
    CHECK(index >= 0 && index < 4);
    done = 1;
    while (done < 4) {
      int some = 0;
      MPI_Waitsome(4, requests, &some, indices, MPI_STATUSES_IGNORE);
      CHECK(some != MPI_UNDEFINED);
      done += some;
    }
    MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag && a == left * 1000 + s && b == a && c == a);

    /* Probes. */
    MPI_Isend(&token, 1, MPI_INT, right, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Probe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &status);
    MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, 8, MPI_COMM_WORLD, &status);
    CHECK(got == left * 1000 + s);
    do MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    while (!flag);
    MPI_Message message;
    MPI_Send(&token, 1, MPI_INT, right, 9, MPI_COMM_WORLD);
    MPI_Mprobe(left, 9, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    CHECK(got == left * 1000 + s);
    MPI_Send(&token, 1, MPI_INT, right, 10, MPI_COMM_WORLD);
    do MPI_Improbe(left, 10, MPI_COMM_WORLD, &flag, &message, &status);
    while (!flag);
    MPI_Imrecv(&got, 1, MPI_INT, &message, &requests[0]);
    MPI_Wait(&requests[0], &status);
    CHECK(got == left * 1000 + s && status.MPI_SOURCE == left);

    /* Calls that complete one operation leave MPI_ERROR unchanged. */
    status.MPI_ERROR = 4711;
    MPI_Sendrecv(&token, 1, MPI_INT, right, 11, &got, 1, MPI_INT, left, 11, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_ERROR == 4711);
    MPI_Send(&token, 1, MPI_INT, right, 12, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, left, 12, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_ERROR == 4711);
    MPI_Send(&token, 1, MPI_INT, right, 13, MPI_COMM_WORLD);
    MPI_Mprobe(left, 13, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&got, 1, MPI_INT, &message, &status);
    CHECK(status.MPI_ERROR == 4711);
    MPI_Send(&token, 1, MPI_INT, right, 14, MPI_COMM_WORLD);
    MPI_Irecv(&got, 1, MPI_INT, left, 14, MPI_COMM_WORLD, &requests[0]);
    MPI_Waitany(1, requests, &flag, &status);
    CHECK(status.MPI_ERROR == 4711 && got == left * 1000 + s);

    /* MPI_PROC_NULL, and a cancelled receive. */
    MPI_Send(&token, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Irecv(&got, 1, MPI_INT, left, 99, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
    edge();
  }
  void* back;
  int back_size;
  MPI_Buffer_detach(&back, &back_size);
  CHECK(back == attached && back_size == 1 << 20);
  MPI_Finalize();
  printf("ok p2p\n");
  return 0;
}
