/* moved_clocks FILE: supersteps of some milliseconds of work, until rank 0 finds FILE, in which no clock may go backwards, none
 * of those that count elapsed time may leave the wall clock, and no timer may fail. Prints "OK clocks" if none has, wherever its rank was moved meanwhile; else
 * what was wrong, and exits with 1. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "told.h"

enum { kClocks = 14 };
static const char* const names[kClocks] = {"CLOCK_MONOTONIC",
                                           "CLOCK_BOOTTIME",
                                           "CLOCK_PROCESS_CPUTIME_ID",
                                           "CLOCK_THREAD_CPUTIME_ID",
                                           "the clock of another thread",
                                           "clock()",
                                           "getrusage(RUSAGE_SELF)",
                                           "ru_utime of RUSAGE_THREAD",
                                           "ru_stime of RUSAGE_THREAD",
                                           "ru_stime of RUSAGE_SELF",
                                           "tms_utime + tms_stime",
                                           "times()",
                                           "MPI_Wtime()",
                                           "CLOCK_MONOTONIC_RAW"};
static int rank, wrong;
static pthread_t other;
static volatile int enough;
static volatile sig_atomic_t alarms, expirations;

static double of_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double as_seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static void read_all(double to[kClocks]) {
  clockid_t of_other;
  struct rusage process, thread;
  struct tms t;
  getrusage(RUSAGE_SELF, &process);
  getrusage(RUSAGE_THREAD, &thread);
  pthread_getcpuclockid(other, &of_other);
  to[0] = of_clock(CLOCK_MONOTONIC);
  to[1] = of_clock(CLOCK_BOOTTIME);
  to[2] = of_clock(CLOCK_PROCESS_CPUTIME_ID);
  to[3] = of_clock(CLOCK_THREAD_CPUTIME_ID);
  to[4] = of_clock(of_other);
  to[5] = (double)clock() / CLOCKS_PER_SEC;
  to[6] = as_seconds(process.ru_utime) + as_seconds(process.ru_stime);
  to[7] = as_seconds(thread.ru_utime);
  to[8] = as_seconds(thread.ru_stime);
  to[9] = as_seconds(process.ru_stime);
  to[11] = (double)times(&t);
  to[10] = (double)(t.tms_utime + t.tms_stime);
  to[12] = MPI_Wtime();
  to[13] = of_clock(CLOCK_MONOTONIC_RAW);
}

static void* compute(void* unused) {
  volatile double x = 0;
  while (!enough) {
    for (int i = 0; i < 100000; ++i) x += i;
    usleep(1000);
  }
  return unused;
}

static void on_alarm(int signal) { signal == SIGALRM ? ++alarms : ++expirations; }

static void fails(const char* what, double is, double was) {
  printf("rank %d: %s: %.9f after %.9f\n", rank, what, is, was);
  wrong = 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  signal(SIGALRM, on_alarm);
  signal(SIGUSR2, on_alarm);
  pthread_create(&other, NULL, compute, NULL);

  const double period = 0.1, begin = of_clock(CLOCK_MONOTONIC);
  struct itimerval tick = {{0, 100000}, {0, 100000}};
  setitimer(ITIMER_REAL, &tick, NULL);
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_SIGNAL, event.sigev_signo = SIGUSR2;
  timer_t timer;
  const struct itimerspec every = {{0, 100000000}, {0, 100000000}};
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &every, NULL);
  const int descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  timerfd_settime(descriptor, 0, &every, NULL);

  const int elapsed[] = {0, 1, 12, 13};
  double was[kClocks], is[kClocks], first[kClocks];
  uint64_t ticks = 0;
  int go_on = 1;
  const double wall = of_clock(CLOCK_REALTIME);
  read_all(was);
  memcpy(first, was, sizeof first);
  while (go_on) {
    volatile double x = 0;
    for (int i = 0; i < 3000000; ++i) x += i;
    MPI_Barrier(MPI_COMM_WORLD); /* here the rank may be moved */
    read_all(is);
    for (int c = 0; c < kClocks; ++c)
      if (is[c] < was[c]) fails(names[c], is[c], was[c]);
    for (size_t i = 0; i < sizeof elapsed / sizeof *elapsed; ++i) {
      const int c = elapsed[i];
      const double off = is[c] - first[c] - (of_clock(CLOCK_REALTIME) - wall);
      if (off < -5 || off > 5) fails(names[c], is[c], was[c]);
    }
    memcpy(was, is, sizeof was);
    uint64_t expired;
    if (read(descriptor, &expired, sizeof expired) == sizeof expired) ticks += expired;
    const double due = (of_clock(CLOCK_MONOTONIC) - begin) / period;
    if ((double)ticks > due) fails("timerfd: expirations, and those that were due", (double)ticks, due);
    go_on = !told(argc > 1 ? argv[1] : NULL);
  }
  uint64_t expired;
  if (read(descriptor, &expired, sizeof expired) == sizeof expired) ticks += expired;
  const double due = (of_clock(CLOCK_MONOTONIC) - begin) / period;
  if ((double)ticks < due - 2) fails("timerfd: expirations, and those that were due", (double)ticks, due);
  if (alarms == 0 || expirations == 0) fails("setitimer, timer_create: signals", alarms, expirations);
  enough = 1;
  pthread_join(other, NULL);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !wrong) printf("OK clocks\n");
  MPI_Finalize();
  return wrong;
}
