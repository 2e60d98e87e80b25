/* threads SUPERSTEPS [init]: MPI_THREAD_MULTIPLE (with "init": by MPI_Init and the environment). Threads that live
 * through all epochs communicate on their own communicators, each in a different order (barriers too: they are no
 * superstep edges), while the main thread calls the superstep edges. */
#include "team.h"

enum { kThreads = 3, kNumbers = 2000 };

static void* work(void* argument) {
  const int me = (int)(size_t)argument;
  const MPI_Comm comm = comms[me];
  int is_main = 1;
  MPI_Is_thread_main(&is_main);
  CHECK(!is_main);
  double out[kNumbers], in[kNumbers];
  for (int s = 0; next_superstep(); ++s) {
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
    MPI_Datatype pair; /* objects created by several threads at once */
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    int two[2] = {rank, s}, got[2];
    MPI_Sendrecv(two, 1, pair, left, 50 + me, got, 1, pair, right, 50 + me, comm, MPI_STATUS_IGNORE);
    CHECK(got[0] == right && got[1] == s);
    MPI_Type_free(&pair);
    superstep_done();
  }
  return NULL;
}

/* The main thread communicates with them. */
static void main_part(int s) {
  CHECK(around(rank + s, 1, MPI_COMM_WORLD) == left + s);
  usleep(1000);
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
  run_team(kThreads, work, main_part, supersteps(argc, argv));
  MPI_Finalize();
  printf("ok threads\n");
  return 0;
}
