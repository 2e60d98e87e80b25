/* Timer descriptors expire at the right time on the program's clocks, whatever happened to them while it was stopped. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { kOnce = 4, kPeriodic = 2, kPeriod = 100000000 };
static const int64_t kSecond = 1000000000, kPause = 400000000, /* the shortest, shim_test.cc */
    kOff = 1250000; /* the shim leaves a timer as it is if it finds it off by 1 ms, and reads it within 0.25 ms */

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

/* The shim stops the program by this function. */
static volatile sig_atomic_t stops;
int raise(int number) {
  stops += number == SIGSTOP;
  return (int)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

/* Ends the superstep, and may be stopped there. Returns by how many expirations the shim may then be off: it infers their number
 * from what it finds before and after a stop, so those that come in between, apart from the pause, may count twice or not at all. */
static int64_t stop(void) {
  const int before = stops;
  const int64_t began = now(CLOCK_MONOTONIC);
  edge();
  const int64_t took = now(CLOCK_MONOTONIC) - began;
  return stops == before ? 0 : (took - (took > kPause ? kPause : 0) + kPeriod / 2) / kPeriod;
}

/* Another thread reads each expiration, also while this one is stopped. */
static _Atomic uint64_t read_by_thread;

static void* read_expirations(void* fd) {
  for (uint64_t more; read(*(int*)fd, &more, sizeof more) == sizeof more;) read_by_thread += more;
  return NULL;
}

static int64_t left(int fd) {
  struct itimerspec value;
  CHECK(timerfd_gettime(fd, &value) == 0);
  return value.it_value.tv_sec * kSecond + value.it_value.tv_nsec;
}

static int take(int fd, int64_t* counted) {
  uint64_t more;
  if (read(fd, &more, sizeof more) != sizeof more) return 0;
  *counted += (int64_t)more;
  return 1;
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
  int64_t counted[kPeriodic] = {0, 0}, inexact = 1;
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    const int64_t off = stops * kOff;
    for (int i = 0; i < kOnce; ++i) {
      const int64_t before = now(once[i].clock), is = left(once[i].fd), after = now(once[i].clock);
      CHECK(once[i].earliest - off <= after + is && before + is <= once[i].latest + off);
    }
    const int64_t by_thread = (int64_t)read_by_thread;
    CHECK(by_thread <= (now(CLOCK_MONOTONIC) - began_earliest + off) / kPeriod + inexact);
    for (int i = 0; i < kPeriodic && s % 2 == 0; ++i) { /* some expirations are unread when the program stops */
      int64_t before, next, after;
      do { /* until none came between the reading of their number and that of the next one's time */
        while (take(periodic[i], &counted[i])) continue;
        before = now(CLOCK_MONOTONIC);
        next = left(periodic[i]);
        after = now(CLOCK_MONOTONIC);
        struct pollfd expiry = {periodic[i], POLLIN, 0};
        CHECK(next != 0 || poll(&expiry, 1, 60000) != 0); /* it is due, and not lost */
      } while (next == 0 || take(periodic[i], &counted[i]));
      /* The first came one period after the beginning; the next one follows those counted. */
      const int64_t earliest = before + next - began_latest - off, latest = after + next - began_earliest + off;
      CHECK(earliest <= (counted[i] + 1 + inexact) * kPeriod && (counted[i] + 1 - inexact) * kPeriod <= latest);
      CHECK(latest / kPeriod * kPeriod >= earliest);
    }
    CHECK(left(idle.fd) == 0 && left(expired.fd) == 0);
    inexact += stop();
  }
  uint64_t more;
  CHECK(read(expired.fd, &more, sizeof more) == sizeof more && more == 1);
  CHECK(read(idle.fd, &more, sizeof more) < 0);
  MPI_Finalize();
  printf("ok timers\n");
  return 0;
}
