/* unreadable SUPERSTEPS WHAT: the system runs out of memory when WHAT of /proc is read after the last point at which a gate can be
 * postponed: its "descriptors", its "threads" or a "timer". */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <sys/timerfd.h>

#include "check.h"
#include "failing_open.h"

static const char* directory = "";
static const char* file = "";
static int readings; /* that still succeed, until the edge */

DIR* opendir(const char* path) { /* replaces the C library's, for the shim too */
  static DIR* (*next)(const char*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "opendir");
  if (strcmp(path, directory) != 0 || readings-- > 0) return next(path);
  errno = ENOMEM;
  return NULL;
}

static int error_of_open(const char* path) { return strcmp(path, file) == 0 ? ENOMEM : 0; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  const char* what = argc > 2 ? argv[2] : "";
  static char info[64];
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  const struct itimerspec hour = {{0, 0}, {3600, 0}};
  CHECK(timerfd_settime(timer, 0, &hour, NULL) == 0);
  snprintf(info, sizeof info, "/proc/self/fdinfo/%d", timer);
  const int descriptors = !strcmp(what, "descriptors");
  if (descriptors) directory = "/proc/self/fd";
  if (!strcmp(what, "threads")) directory = "/proc/self/task";
  if (!strcmp(what, "timer")) file = info;
  for (int s = 0; going_on(s, n); ++s) {
    readings = descriptors; /* the gate itself lists them once */
    edge();
  }
  MPI_Finalize();
  printf("ok unreadable %s\n", what);
  return 0;
}
