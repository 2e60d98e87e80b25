/* Several threads that live through all epochs and work in every superstep, each on its own communicator, while the
 * main thread does its part and calls the superstep edges. */
#ifndef BSP_TESTS_MPI_SHIM_TEAM_H
#define BSP_TESTS_MPI_SHIM_TEAM_H

#include <pthread.h>

#include "check.h"

enum { kMostThreads = 8 };

static MPI_Comm comms[kMostThreads];
static int rank, size, left, right;
static pthread_barrier_t superstep_begins, superstep_ends;
static volatile int team_works = 1; /* set by the main thread before a superstep begins */

/* Called by a thread; false when there is no further superstep. */
static int next_superstep(void) {
  pthread_barrier_wait(&superstep_begins);
  return team_works;
}
static void superstep_done(void) { pthread_barrier_wait(&superstep_ends); }

/* The ring of all ranks: sends `word` to the right, returns the word from the left. */
static int around(int word, int tag, MPI_Comm comm) {
  int got = -1;
  MPI_Sendrecv(&word, 1, MPI_INT, right, tag, &got, 1, MPI_INT, left, tag, comm, MPI_STATUS_IGNORE);
  return got;
}

/* Runs `n` supersteps; `work` is a thread's function, its argument the thread's number. */
static void run_team(size_t threads, void* (*work)(void*), void (*main_part)(int superstep), int n) {
  pthread_t team[kMostThreads];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size, right = (rank + 1) % size;
  pthread_barrier_init(&superstep_begins, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&superstep_ends, NULL, (unsigned)threads + 1);
  for (size_t t = 0; t < threads; ++t) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    pthread_create(&team[t], NULL, work, (void*)t);
  }
  for (int s = 0; going_on(s, n); ++s) {
    pthread_barrier_wait(&superstep_begins);
    main_part(s);
    pthread_barrier_wait(&superstep_ends);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  team_works = 0;
  pthread_barrier_wait(&superstep_begins);
  for (size_t t = 0; t < threads; ++t) {
    pthread_join(team[t], NULL);
    MPI_Comm_free(&comms[t]);
  }
}

#endif
