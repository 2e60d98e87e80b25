/* Threads whose stacks are just large enough for MPI's calls. */
#include <pthread.h>

#include "check.h"

enum { kStackBytes = 17 << 10, kSteps = 20 };

static int rank, size, n, s = 0, more = 1;

static void* work(void* argument) {
  for (int i = 0; i < kSteps && more; ++i, ++s) {
    more = going_on(s, n);
    int sum = -1;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    edge();
  }
  return argument;
}

int main(int argc, char** argv) {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  n = supersteps(argc, argv);
  pthread_attr_t small;
  pthread_attr_init(&small);
  CHECK(pthread_attr_setstacksize(&small, kStackBytes) == 0);
  while (more) {
    pthread_t thread;
    CHECK(pthread_create(&thread, &small, work, NULL) == 0);
    pthread_join(thread, NULL);
  }
  MPI_Finalize();
  printf("ok small_stack\n");
  return 0;
}
