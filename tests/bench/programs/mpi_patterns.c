/* One communication pattern at a time, on demand: what the shim costs is measured with it.
 *
 *   mpi_patterns steps N     N supersteps of an allreduce, a nap of a millisecond and a barrier
 *   mpi_patterns serve FIFO  lines from FIFO (each rank has its own, all get the same lines):
 *       latency N     N round trips of 8 bytes between ranks 0 and 1
 *       bandwidth N   N times 16 messages of 1 MiB from rank 0 to 1, and an answer
 *       allreduce N   N sums of one double over all ranks
 *       fortran_latency N, fortran_allreduce N   the same by the calls that a compiled Fortran program makes
 *       end
 *     Rank 0 answers each with a line: nanoseconds the N took. Between lines every rank sleeps in read(2), so
 *     that another job can be measured meanwhile. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kWindow = 16, kMessage = 1 << 20 };
static int rank, size;
static char* buffer;

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void latency(long n) {
  if (rank > 1) return;
  for (long i = 0; i < n; ++i) {
    if (rank == 0) {
      MPI_Send(buffer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(buffer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  }
}

static void bandwidth(long n) {
  MPI_Request requests[kWindow];
  if (rank > 1) return;
  for (long i = 0; i < n; ++i) {
    for (int w = 0; w < kWindow; ++w) {
      char* at = buffer + (size_t)w * kMessage;
      if (rank == 0)
        MPI_Isend(at, kMessage, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[w]);
      else
        MPI_Irecv(at, kMessage, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[w]);
    }
    MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
      MPI_Recv(buffer, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(buffer, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
  }
}

static void allreduce(long n) {
  double mine = rank + 1, sum = 0;
  for (long i = 0; i < n; ++i) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (n > 0 && sum != size * (size + 1) / 2.0) MPI_Abort(MPI_COMM_WORLD, 3);
}

void mpi_send_(const void* buffer, const MPI_Fint* count, const MPI_Fint* type, const MPI_Fint* to, const MPI_Fint* tag,
               const MPI_Fint* comm, MPI_Fint* error);
void mpi_recv_(void* buffer, const MPI_Fint* count, const MPI_Fint* type, const MPI_Fint* from, const MPI_Fint* tag,
               const MPI_Fint* comm, MPI_Fint* status, MPI_Fint* error);
void mpi_allreduce_(const void* mine, void* all, const MPI_Fint* count, const MPI_Fint* type, const MPI_Fint* op,
                    const MPI_Fint* comm, MPI_Fint* error);

static void fortran_latency(long n) {
  const MPI_Fint count = 8, type = MPI_Type_c2f(MPI_BYTE), other = 1 - rank, tag = 1,
                 comm = MPI_Comm_c2f(MPI_COMM_WORLD);
  MPI_Fint error;
  if (rank > 1) return;
  for (long i = 0; i < n; ++i) {
    if (rank == 0) mpi_send_(buffer, &count, &type, &other, &tag, &comm, &error);
    mpi_recv_(buffer, &count, &type, &other, &tag, &comm, MPI_F_STATUS_IGNORE, &error);
    if (rank == 1) mpi_send_(buffer, &count, &type, &other, &tag, &comm, &error);
  }
}

static void fortran_allreduce(long n) {
  const MPI_Fint count = 1, type = MPI_Type_c2f(MPI_DOUBLE), op = MPI_Op_c2f(MPI_SUM),
                 comm = MPI_Comm_c2f(MPI_COMM_WORLD);
  MPI_Fint error;
  double mine = rank + 1, sum = 0;
  for (long i = 0; i < n; ++i) mpi_allreduce_(&mine, &sum, &count, &type, &op, &comm, &error);
  if (n > 0 && sum != size * (size + 1) / 2.0) MPI_Abort(MPI_COMM_WORLD, 3);
}

static void steps(long n) {
  for (long i = 0; i < n; ++i) {
    allreduce(1);
    usleep(1000);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void serve(FILE* orders) {
  char line[128], what[32];
  while (fgets(line, sizeof line, orders)) {
    long n = 0;
    if (sscanf(line, "%31s %ld", what, &n) < 1 || !strcmp(what, "end")) return;
    MPI_Barrier(MPI_COMM_WORLD);
    const long long start = now_ns();
    if (!strcmp(what, "latency")) latency(n);
    if (!strcmp(what, "bandwidth")) bandwidth(n);
    if (!strcmp(what, "allreduce")) allreduce(n);
    if (!strcmp(what, "fortran_latency")) fortran_latency(n);
    if (!strcmp(what, "fortran_allreduce")) fortran_allreduce(n);
    const long long took = now_ns() - start;
    if (rank != 0) continue;
    printf("%lld\n", took);
    fflush(stdout);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  buffer = malloc((size_t)kWindow * kMessage);
  if (!buffer) MPI_Abort(MPI_COMM_WORLD, 2);
  /* Pages that were never written would all be the same page of zeros, and cached. */
  memset(buffer, rank + 1, (size_t)kWindow * kMessage);
  if (argc == 3 && !strcmp(argv[1], "steps")) {
    steps(atol(argv[2]));
  } else if (argc == 3 && !strcmp(argv[1], "serve")) {
    FILE* orders = fopen(argv[2], "r");
    if (!orders) MPI_Abort(MPI_COMM_WORLD, 2);
    serve(orders);
  } else {
    fprintf(stderr, "usage: mpi_patterns steps N | serve FIFO\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return 0;
}
