/* Timer descriptors expire at the right time on the program's clocks, whatever happened to them while it was stopped. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { kOnce = 4, kPeriodic = 2, kPeriod = 100000000 };
static const int64_t kSecond = 1000000000,
                     kTolerance = 5000000; /* error of values read in several steps, at each epoch */

typedef struct {
  int fd;
  clockid_t clock;
  int64_t earliest, latest; /* its expiry: between the readings of the clock before and after it was set */
} Timer;

static int64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

static struct timespec as_timespec(int64_t ns) { return (struct timespec){ns / kSecond, ns % kSecond}; }

static Timer set(clockid_t clock, int flags, int64_t ns) {
  Timer timer = {timerfd_create(clock, TFD_NONBLOCK | TFD_CLOEXEC), clock, now(clock) + ns, 0};
  struct itimerspec value = {{0, 0}, as_timespec(flags & TFD_TIMER_ABSTIME ? timer.earliest : ns)};
  CHECK(timer.fd >= 0 && timerfd_settime(timer.fd, flags, &value, NULL) == 0);
  timer.latest = flags & TFD_TIMER_ABSTIME ? timer.earliest : now(clock) + ns;
  return timer;
}

/* Another thread reads each expiration, also while this one is stopped. */
static _Atomic uint64_t read_by_thread;

static void* read_expirations(void* fd) {
  for (uint64_t more; read(*(int*)fd, &more, sizeof more) == sizeof more;) read_by_thread += more;
  return NULL;
}

static int64_t left(const Timer* timer) {
  struct itimerspec value;
  CHECK(timerfd_gettime(timer->fd, &value) == 0);
  return value.it_value.tv_sec * kSecond + value.it_value.tv_nsec;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const Timer once[kOnce] = {set(CLOCK_MONOTONIC, 0, 3600 * kSecond + kSecond / 3),
                             set(CLOCK_MONOTONIC, TFD_TIMER_ABSTIME, 3600 * kSecond + kSecond / 3),
                             set(CLOCK_REALTIME, TFD_TIMER_ABSTIME, 7200 * kSecond + kSecond / 3),
                             set(CLOCK_BOOTTIME, 0, 7200 * kSecond)};
  struct itimerspec value = {as_timespec(kPeriod), as_timespec(kPeriod)};
  const int64_t began_earliest = now(CLOCK_MONOTONIC);
  const int periodic[kPeriodic] = {timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK),
                                   timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)};
  CHECK(timerfd_settime(periodic[0], 0, &value, NULL) == 0);
  const struct itimerspec absolute = {as_timespec(kPeriod), as_timespec(began_earliest + kPeriod)};
  CHECK(timerfd_settime(periodic[1], TFD_TIMER_ABSTIME, &absolute, NULL) == 0);
  const int64_t began_latest = now(CLOCK_MONOTONIC);
  int threads_timer = timerfd_create(CLOCK_MONOTONIC, 0);
  CHECK(timerfd_settime(threads_timer, 0, &value, NULL) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, read_expirations, &threads_timer) == 0);
  Timer expired = set(CLOCK_MONOTONIC, 0, 1), idle = set(CLOCK_MONOTONIC, 0, 3600 * kSecond);
  value = (struct itimerspec){{0, 0}, {0, 0}};
  timerfd_settime(idle.fd, 0, &value, NULL);
  uint64_t ticks[kPeriodic] = {0, 0}, more;
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    for (int i = 0; i < kOnce; ++i) {
      const int64_t before = now(once[i].clock), is = left(&once[i]), after = now(once[i].clock);
      CHECK(once[i].earliest - after - kTolerance <= is && is <= once[i].latest - before + kTolerance);
    }
    const int64_t by_thread = (int64_t)read_by_thread;
    CHECK(by_thread <= (now(CLOCK_MONOTONIC) - began_earliest + kTolerance) / kPeriod + 1);
    for (int i = 0; i < kPeriodic && s % 2 == 0; ++i) { /* some expirations are unread when the program stops */
      const int64_t before = now(CLOCK_MONOTONIC);
      if (read(periodic[i], &more, sizeof more) == sizeof more) ticks[i] += more;
      const int64_t after = now(CLOCK_MONOTONIC);
      CHECK((before - began_latest - kTolerance) / kPeriod <= (int64_t)ticks[i] + 1);
      CHECK((int64_t)ticks[i] <= (after - began_earliest + kTolerance) / kPeriod + 1);
    }
    CHECK(left(&idle) == 0 && left(&expired) == 0);
    edge();
  }
  CHECK(read(expired.fd, &more, sizeof more) == sizeof more && more == 1);
  CHECK(read(idle.fd, &more, sizeof more) < 0);
  MPI_Finalize();
  printf("ok timers\n");
  return 0;
}
