/* threads SUPERSTEPS [init]: MPI_THREAD_MULTIPLE (with "init": by MPI_Init and the environment). Threads that live through all
 * epochs exchange on communicators of their own, each in an order of its own (barriers too: they are no superstep edges), while
 * the main thread makes the supersteps. */
#include <pthread.h>

#include "check.h"

enum { kThreads = 3, kNumbers = 2000 };

static MPI_Comm comms[kThreads];
static pthread_barrier_t begin, end;
static int n, rank, size;
static volatile int running = 1; /* set by the main thread before `begin` */

static void* work(void* argument) {
  const int me = (int)(size_t)argument;
  const MPI_Comm comm = comms[me];
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int is_main = 1;
  MPI_Is_thread_main(&is_main);
  CHECK(!is_main);
  double out[kNumbers], in[kNumbers];
  for (int s = 0;; ++s) {
    pthread_barrier_wait(&begin);
    if (!running) return NULL;
    usleep((unsigned)(1 + (rank * 7 + me * 5 + s * 3) % 11) * 50);
    for (int i = 0; i < kNumbers; ++i) out[i] = rank + me * 100 + s + i;
    MPI_Request requests[2];
    MPI_Irecv(in, kNumbers, MPI_DOUBLE, left, me, comm, &requests[0]);
    MPI_Isend(out, kNumbers, MPI_DOUBLE, right, me, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(in[0] == left + me * 100 + s && in[kNumbers - 1] == left + me * 100 + s + kNumbers - 1);
    MPI_Barrier(comm);
    long mine = rank + s, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
    CHECK(sum == (long)size * (size - 1) / 2 + (long)size * s);
    MPI_Datatype pair; /* objects made by several threads at once */
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    int two[2] = {rank, s}, got[2];
    MPI_Sendrecv(two, 1, pair, left, 50 + me, got, 1, pair, right, 50 + me, comm, MPI_STATUS_IGNORE);
    CHECK(got[0] == right && got[1] == s);
    MPI_Type_free(&pair);
    pthread_barrier_wait(&end);
  }
}

int main(int argc, char** argv) {
  int provided = MPI_THREAD_MULTIPLE, asked = -1, is_main = 0;
  if (argc > 2)
    MPI_Init(&argc, &argv);
  else
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  MPI_Query_thread(&asked);
  MPI_Is_thread_main(&is_main);
  CHECK(asked == MPI_THREAD_MULTIPLE && is_main);
  n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  pthread_barrier_init(&begin, NULL, kThreads + 1);
  pthread_barrier_init(&end, NULL, kThreads + 1);
  pthread_t threads[kThreads];
  for (size_t t = 0; t < kThreads; ++t) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    pthread_create(&threads[t], NULL, work, (void*)t);
  }
  for (int s = 0; going_on(s, n); ++s) {
    pthread_barrier_wait(&begin);
    int token = rank + s, got = -1; /* the main thread communicates with them */
    MPI_Sendrecv(&token, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT, (rank + size - 1) % size, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == (rank + size - 1) % size + s);
    pthread_barrier_wait(&end);
    edge();
  }
  running = 0;
  pthread_barrier_wait(&begin);
  for (int t = 0; t < kThreads; ++t) {
    pthread_join(threads[t], NULL);
    MPI_Comm_free(&comms[t]);
  }
  MPI_Finalize();
  printf("ok threads\n");
  return 0;
}
