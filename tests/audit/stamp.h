/* The part of the copy checker that runs inside a program. stamp() appends a line to a file that all copies of all
 * ranks share:
 *
 *   <ns of the wall clock> <rank> <pod> <pid> <superstep>
 *
 * audit.py then checks whether a rank ever ran twice at the same time. A computing program must stamp at least every
 * 50 ms, so that no second copy that runs for 50 ms is missed.
 *
 * The file is opened for each stamp, so that no open descriptor interferes with a checkpoint. One short O_APPEND write
 * is atomic. All nodes of a test are on one machine, whose wall clock they share. Clock and host name (the pod's) come from raw
 * system calls: a restored process remembers an old name. */
#ifndef BSP_TESTS_STAMP_H
#define BSP_TESTS_STAMP_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* 0, or -1 with errno. `pod`: NULL uses the host name. */
static inline int stamp(const char* file, int rank, const char* pod, long superstep) {
  struct timespec now;
  struct utsname host;
  char line[256];
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  uname(&host);
  const int length = snprintf(line, sizeof line, "%lld %d %s %d %ld\n", now.tv_sec * 1000000000LL + now.tv_nsec, rank,
                              pod != NULL ? pod : host.nodename, (int)getpid(), superstep);
  const int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return -1;
  const ssize_t written = write(fd, line, (size_t)length);
  close(fd);
  return written == length ? 0 : -1;
}

#endif
