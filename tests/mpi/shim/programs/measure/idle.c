// idle [awake]: rank 0 waits for rank 1, which sends as soon as rank 0's thread has slept a hundred times meanwhile. `awake`: it sends after
// a second, in which rank 0 must not have slept. What the program yields for itself doesn't sleep. Further ranks wait for these two.
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static long slept_here(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

static long slept(const char* status) {
  char line[256];
  long times = -1;
  FILE* file = fopen(status, "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "voluntary_ctxt_switches: %ld", &times) == 1) break;
  if (file) fclose(file);
  return times;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long before = slept_here();
  for (int i = 0; i < 10000; ++i) sched_yield();
  if (slept_here() - before > 100) return printf("FAILED: the program's own yields slept\n"), 1;
  char status[64] = "";
  snprintf(status, sizeof status, "/proc/%d/task/%d/status", getpid(), gettid());
  if (rank > 1) {
  } else if (rank == 0) {
    MPI_Send(status, sizeof status, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(status, sizeof status, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const long first = slept(status);
    const time_t deadline = time(NULL) + 100;
    if (argc > 1) {
      sleep(1);
      if (slept(status) > first + 50) return printf("FAILED: rank 0 has slept %ld times\n", slept(status) - first), 1;
    }
    while (argc == 1 && slept(status) < first + 100) {
      if (time(NULL) > deadline) return printf("FAILED: rank 0 has slept %ld times\n", slept(status) - first), 1;
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    MPI_Send(NULL, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  printf("ok idle\n");
  return 0;
}
