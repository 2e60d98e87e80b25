/* MPI_THREAD_MULTIPLE: in three of four supersteps a thread of rank 0 begins a broadcast before the edge, those of the
 * other ranks after it. The root only sends, so it may return before the edge, but the main thread doesn't wait for it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "check.h"

static int rank;
static MPI_Comm copy;
static atomic_int asked, done; /* broadcasts; asked < 0: none will follow */

static void* work(void* argument) {
  (void)argument;
  for (int s = 0; asked >= 0; done = s) {
    if (asked <= s) {
      usleep(50);
      continue;
    }
    int word = rank == 0 ? s : -1;
    MPI_Bcast(&word, 1, MPI_INT, 0, copy);
    CHECK(word == s);
    ++s;
  }
  return NULL;
}

static void wait_until_done(int broadcasts) {
  while (done < broadcasts) sched_yield();
}

int main(int argc, char** argv) {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    const int in_step = s % 4 == 3;
    wait_until_done(s);
    if (in_step || rank == 0) asked = s + 1;
    if (in_step) wait_until_done(s + 1);
    edge();
    asked = s + 1;
  }
  wait_until_done(asked);
  asked = -1;
  pthread_join(thread, NULL);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  printf("ok threads_out_of_step\n");
  return 0;
}
