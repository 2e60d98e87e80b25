/* Somebody sets the machine's clock, again and again: an hour later at each reading. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>

#include "check.h"

/* Replaces the C library's, for the shim too. */
int clock_gettime(clockid_t clock, struct timespec* now) {
  static _Atomic int readings = 0;
  const int rc = (int)syscall(SYS_clock_gettime, clock, now);
  if (rc == 0 && clock == CLOCK_REALTIME) now->tv_sec += 3600L * ++readings;
  return rc;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int s = 0;
  for (const int n = supersteps(argc, argv); going_on(s, n); ++s) edge();
  MPI_Finalize();
  printf("ok set_clock\n");
  return 0;
}
