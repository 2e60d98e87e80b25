/* Shared by the test programs. Each is a plain MPI program: it checks its own results and prints one line, "ok <name>
 * ..." or "wrong <what>". argv[1] is the number of supersteps; most end earlier, in the superstep in which some rank
 * got SIGUSR1. */
#ifndef BSP_TESTS_MPI_SHIM_CHECK_H
#define BSP_TESTS_MPI_SHIM_CHECK_H

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what)                                                                     \
  do {                                                                                  \
    if (!(what)) {                                                                      \
      int rank_ = -1;                                                                   \
      MPI_Comm_rank(MPI_COMM_WORLD, &rank_);                                            \
      fprintf(stderr, "rank %d, %s:%d: wrong: %s\n", rank_, __FILE__, __LINE__, #what); \
      printf("wrong %s:%d %s\n", __FILE__, __LINE__, #what);                            \
      fflush(stdout);                                                                   \
      _exit(3);                                                                         \
    }                                                                                   \
  } while (0)

static inline int supersteps(int argc, char** argv) { return argc > 1 ? atoi(argv[1]) : 1000; }

static volatile sig_atomic_t got_enough = 0;
static inline void on_enough(int number) { got_enough = number; }

/* Whether to run superstep s. Collective over all ranks. */
static inline int going_on(int s, int n) {
  if (s == 0) signal(SIGUSR1, on_enough);
  int mine = got_enough, any = 0;
  MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return s < n && !any;
}

/* The end of a superstep: a moment of "computation", then the edge. */
static inline void edge(void) {
  usleep(1000);
  MPI_Barrier(MPI_COMM_WORLD);
}

#endif
