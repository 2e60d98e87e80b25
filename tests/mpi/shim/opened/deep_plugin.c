/* Linked with MPI, and opened with RTLD_DEEPBIND before libmpi is there. */
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "../programs/check.h"

extern void offer(int (*)(int, char**)) __attribute__((weak));

/* Through a table, as a binding for scripts calls them. */
static int (*const finish)(void) = MPI_Finalize;

static int opened_in_constructor = 0;

int run(int argc, char** argv) {
  if (opened_in_constructor) {
    MPI_Finalize();
    return 0;
  }
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0, s = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size == 2);
  const int n = supersteps(argc, argv);
  const int own = eventfd(7, EFD_NONBLOCK);
  struct timespec before, now;
  clock_gettime(CLOCK_MONOTONIC, &before);
  for (; going_on(s, n); ++s) {
    int got = -1;
    const int sent = rank + s;
    MPI_Sendrecv(&sent, 1, MPI_INT, 1 - rank, 1, &got, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 1 - rank + s);
    clock_gettime(CLOCK_MONOTONIC, &now);
    CHECK(now.tv_sec > before.tv_sec || (now.tv_sec == before.tv_sec && now.tv_nsec >= before.tv_nsec));
    before = now;
    edge();
  }
  eventfd_t count = 0;
  CHECK(eventfd_read(own, &count) == 0 && count == 7);
  finish();
  printf("ok deep %d\n", s);
  return 0;
}

__attribute__((constructor)) static void introduce(void) {
  if (offer) offer(run);
  if (getenv("DEEP_PLUGIN_INITIALIZES")) opened_in_constructor = MPI_Init(NULL, NULL) == MPI_SUCCESS;
}
