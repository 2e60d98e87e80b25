/* Threads in calls that wait: those that Linux ends with EINTR when the process was stopped, although no signal handler ran
 * (signal(7)), those that CRIU lets end so, and those until a time of a clock that is another on another machine. None may
 * return before its time, and each must return. Without a handler of its own, the program takes SIGUSR1 by sigtimedwait; it
 * ends too when rank 0 finds the file argv[2]. With argv[1] "handler" a thread must see the EINTR of one. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>

#include "check.h"

#define PERIOD_MS 200
static const struct timespec period = {0, PERIOD_MS * 1000000L};
static const char* volatile failed;
static int pipe_ends[2], epoll;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, taken = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER, monotonic_condition;
static uint32_t word;
static sigset_t never, all; /* never: sent to nobody */

static struct timespec now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t;
}
static struct timespec due(clockid_t clock) {
  struct timespec t = now(clock);
  t.tv_nsec += period.tv_nsec;
  if (t.tv_nsec >= 1000000000L) t.tv_nsec -= 1000000000L, t.tv_sec++;
  return t;
}
static double seconds(void) {
  const struct timespec t = now(CLOCK_MONOTONIC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int in_epoll_wait(int ms) {
  struct epoll_event event;
  return epoll_wait(epoll, &event, 1, ms);
}
static int in_epoll_pwait(int ms) {
  struct epoll_event event;
  return epoll_pwait(epoll, &event, 1, ms, &all);
}
static int in_epoll_pwait2(int ms) {
  struct epoll_event event;
  return epoll_pwait2(epoll, &event, 1, ms < 0 ? NULL : &period, NULL);
}
static int in_poll(int ms) {
  struct pollfd end = {.fd = pipe_ends[0], .events = POLLIN};
  return poll(&end, 1, ms);
}
static int in_ppoll(int ms) {
  struct pollfd end = {.fd = pipe_ends[0], .events = POLLIN};
  return ppoll(&end, 1, ms < 0 ? NULL : &period, NULL);
}
static int in_select(int ms) {
  struct timeval timeout = {0, PERIOD_MS * 1000};
  fd_set set;
  FD_ZERO(&set);
  FD_SET(pipe_ends[0], &set);
  return select(pipe_ends[0] + 1, &set, NULL, NULL, ms < 0 ? NULL : &timeout);
}
static int in_pselect(int ms) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(pipe_ends[0], &set);
  return pselect(pipe_ends[0] + 1, &set, NULL, NULL, ms < 0 ? NULL : &period, NULL);
}
static int in_read(int ms) {
  char byte;
  (void)ms;
  return (int)read(pipe_ends[0], &byte, 1);
}
static int in_sigwaitinfo(int ms) { return ms < 0 ? sigwaitinfo(&never, NULL) : sigtimedwait(&never, NULL, &period); }
static int in_sem_wait(int ms) {
  struct timespec until = due(CLOCK_REALTIME);
  return ms < 0 ? sem_wait(&semaphore) : sem_timedwait(&semaphore, &until);
}
static int in_sem_clockwait(int ms) {
  struct timespec until = due(CLOCK_MONOTONIC);
  (void)ms;
  return sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until);
}
static int in_nanosleep(int ms) {
  (void)ms;
  return nanosleep(&period, NULL);
}
static int in_clock_nanosleep(int ms) {
  (void)ms;
  return clock_nanosleep(CLOCK_MONOTONIC, 0, &period, NULL);
}
static int until_a_time(int ms) {
  const struct timespec until = due(CLOCK_MONOTONIC);
  (void)ms;
  return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}
static int in_usleep(int ms) { return usleep((useconds_t)ms * 1000); }
static int in_sleep(int ms) {
  (void)ms;
  return (int)sleep(1);
}
static int in_thrd_sleep(int ms) {
  (void)ms;
  return thrd_sleep(&period, NULL);
}

/* Waits for a condition until a time, which may wake without a cause. */
static int for_condition(int (*wait)(const struct timespec* until)) {
  const struct timespec until = due(CLOCK_MONOTONIC);
  int error;
  pthread_mutex_lock(&mutex);
  do error = wait(&until);
  while (!error);
  pthread_mutex_unlock(&mutex);
  return error;
}
static int timedwait(const struct timespec* until) {
  return pthread_cond_timedwait(&monotonic_condition, &mutex, until);
}
static int clockwait(const struct timespec* until) {
  return pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, until);
}
static int in_cond_timedwait(int ms) {
  (void)ms;
  return for_condition(timedwait);
}
static int in_cond_clockwait(int ms) {
  (void)ms;
  return for_condition(clockwait);
}
static int in_mutex_clocklock(int ms) {
  const struct timespec until = due(CLOCK_MONOTONIC);
  return ms < 0 ? pthread_mutex_lock(&taken) : pthread_mutex_clocklock(&taken, CLOCK_MONOTONIC, &until);
}
static int in_rwlock_clockrdlock(int ms) {
  const struct timespec until = due(CLOCK_MONOTONIC);
  return ms < 0 ? pthread_rwlock_rdlock(&lock) : pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &until);
}
/* As C++'s futures and Rust's threads wait. */
static int in_futex(int ms) {
  const struct timespec until = due(CLOCK_MONOTONIC);
  int result;
  do
    result = (int)syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, ms < 0 ? NULL : &until, NULL,
                          FUTEX_BITSET_MATCH_ANY);
  while (result < 0 && errno == EINTR);
  return result;
}

static const struct blocking {
  const char* name;
  int (*call)(int ms); /* -1: for ever */
  int ends, error;     /* what it returns after PERIOD_MS; errno if that is -1 */
  int for_ever;        /* can be waited for without a limit, too; 2: only so */
} calls[] = {{"epoll_wait", in_epoll_wait, 0, 0, 1},
             {"epoll_pwait", in_epoll_pwait, 0, 0, 1},
             {"epoll_pwait2", in_epoll_pwait2, 0, 0, 1},
             {"poll", in_poll, 0, 0, 1},
             {"ppoll", in_ppoll, 0, 0, 1},
             {"select", in_select, 0, 0, 1},
             {"pselect", in_pselect, 0, 0, 1},
             {"read", in_read, 0, 0, 2},
             {"sigwaitinfo", in_sigwaitinfo, -1, EAGAIN, 1},
             {"sem_timedwait", in_sem_wait, -1, ETIMEDOUT, 1},
             {"sem_clockwait", in_sem_clockwait, -1, ETIMEDOUT, 0},
             {"nanosleep", in_nanosleep, 0, 0, 0},
             {"clock_nanosleep", in_clock_nanosleep, 0, 0, 0},
             {"clock_nanosleep until a time", until_a_time, 0, 0, 0},
             {"usleep", in_usleep, 0, 0, 0},
             {"sleep", in_sleep, 0, 0, 0},
             {"thrd_sleep", in_thrd_sleep, 0, 0, 0},
             {"pthread_cond_timedwait", in_cond_timedwait, ETIMEDOUT, 0, 0},
             {"pthread_cond_clockwait", in_cond_clockwait, ETIMEDOUT, 0, 0},
             {"pthread_mutex_clocklock", in_mutex_clocklock, ETIMEDOUT, 0, 1},
             {"pthread_rwlock_clockrdlock", in_rwlock_clockrdlock, ETIMEDOUT, 0, 1},
             {"futex", in_futex, -1, ETIMEDOUT, 1}};
enum { kCalls = sizeof(calls) / sizeof(*calls) };
static volatile long rounds[kCalls];

static void* for_ever(void* of) {
  const struct blocking* blocking = of;
  const int got = blocking->call(-1), error = errno;
  fprintf(stderr, "%s returned %d (%s)\n", blocking->name, got, got < 0 ? strerror(error) : "without a cause");
  failed = blocking->name;
  return NULL;
}
static void* again_and_again(void* of) {
  const struct blocking* blocking = of;
  for (;;) {
    errno = 0;
    const double begin = seconds();
    const int got = blocking->call(PERIOD_MS), error = errno;
    const double took = seconds() - begin;
    if (got == blocking->ends && (got != -1 || error == blocking->error) && took > 0.95e-3 * PERIOD_MS) {
      rounds[blocking - calls]++;
      continue;
    }
    fprintf(stderr, "%s returned %d (%s) after %.3f s\n", blocking->name, got, strerror(error), took);
    failed = blocking->name;
    return NULL;
  }
}

static volatile sig_atomic_t handled;
static void on_signal(int number) { handled = number; }
static volatile int interrupted;
static void* until_interrupted(void* unused) {
  for (int i = 0; i < 2; i++) {
    while ((i == 0 ? in_poll(-1) : in_epoll_wait(-1)) == -1 && errno == EINTR && !handled)
      continue; /* a stop, which it must expect */
    handled = 0;
    interrupted = i + 1;
  }
  return unused;
}
static void interrupt(void) {
  pthread_t thread;
  struct sigaction action = {.sa_handler = on_signal};
  CHECK(!sigaction(SIGUSR2, &action, NULL) && !pthread_create(&thread, NULL, until_interrupted, NULL));
  for (int i = 0; i < 2; i++)
    while (interrupted == i) {
      usleep(10000);
      pthread_kill(thread, SIGUSR2); /* repeated, as it may come before the call */
    }
  pthread_join(thread, NULL);
}

/* Whether every call with a limit has returned twice since `from`. */
static int all_return(const long from[kCalls]) {
  for (int i = 0; i < kCalls; i++)
    if (calls[i].for_ever < 2 && rounds[i] < from[i] + 2) return 0;
  return 1;
}

int main(int argc, char** argv) {
  struct epoll_event wanted = {.events = EPOLLIN};
  const struct timespec at_once = {0, 0};
  sigset_t enough;
  pthread_condattr_t monotonic;
  long from[kCalls] = {0};
  int rank, told = 0, end = 0;
  sigfillset(&all);
  sigemptyset(&enough);
  sigaddset(&enough, SIGUSR1);
  sigprocmask(SIG_BLOCK, &enough, NULL);
  sigemptyset(&never);
  sigaddset(&never, SIGRTMIN + 5);
  sigprocmask(SIG_BLOCK, &never, NULL);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK(!pipe(pipe_ends) && (epoll = epoll_create1(0)) >= 0 && !sem_init(&semaphore, 0, 0));
  CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &wanted));
  CHECK(!pthread_mutex_lock(&taken) && !pthread_rwlock_wrlock(&lock));
  CHECK(!pthread_condattr_init(&monotonic) && !pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) &&
        !pthread_cond_init(&monotonic_condition, &monotonic));
  const int with_handler = argc > 1 && !strcmp(argv[1], "handler");
  if (with_handler) {
    interrupt();
  } else {
    for (int i = 0; i < kCalls; i++) {
      pthread_t thread;
      void* const of = (void*)&calls[i];
      if (calls[i].for_ever) CHECK(!pthread_create(&thread, NULL, for_ever, of));
      if (calls[i].for_ever < 2) CHECK(!pthread_create(&thread, NULL, again_and_again, of));
    }
  }
  while (!end) {
    edge();
    if (failed) printf("wrong %s\n", failed), fflush(stdout), _exit(3);
    if (!told) {
      told = sigtimedwait(&enough, NULL, &at_once) == SIGUSR1 || (rank == 0 && argc > 2 && !access(argv[2], F_OK));
      MPI_Allreduce(MPI_IN_PLACE, &told, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      for (int i = 0; i < kCalls; i++) from[i] = rounds[i];
    } else {
      end = with_handler || all_return(from);
      MPI_Allreduce(MPI_IN_PLACE, &end, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
  }
  MPI_Finalize();
  puts("ok blocking calls");
  return 0;
}
