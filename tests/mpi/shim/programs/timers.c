/* Timer descriptors expire at the right time on the program's clocks, whatever happened to them while it was stopped. */
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>

#include "check.h"

enum { kOnce = 4, kPeriod = 100000000 };
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
  const int periodic = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct itimerspec value = {as_timespec(kPeriod), as_timespec(kPeriod)};
  const int64_t began_earliest = now(CLOCK_MONOTONIC);
  CHECK(timerfd_settime(periodic, 0, &value, NULL) == 0);
  const int64_t began_latest = now(CLOCK_MONOTONIC);
  Timer expired = set(CLOCK_MONOTONIC, 0, 1), idle = set(CLOCK_MONOTONIC, 0, 3600 * kSecond);
  value = (struct itimerspec){{0, 0}, {0, 0}};
  timerfd_settime(idle.fd, 0, &value, NULL);
  uint64_t ticks = 0, more;
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    for (int i = 0; i < kOnce; ++i) {
      const int64_t before = now(once[i].clock), is = left(&once[i]), after = now(once[i].clock);
      CHECK(once[i].earliest - after - kTolerance <= is && is <= once[i].latest - before + kTolerance);
    }
    if (s % 2 == 0) { /* some expirations are unread when the program stops */
      const int64_t before = now(CLOCK_MONOTONIC);
      if (read(periodic, &more, sizeof more) == sizeof more) ticks += more;
      const int64_t after = now(CLOCK_MONOTONIC);
      CHECK((before - began_latest - kTolerance) / kPeriod <= (int64_t)ticks + 1);
      CHECK((int64_t)ticks <= (after - began_earliest + kTolerance) / kPeriod + 1);
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
