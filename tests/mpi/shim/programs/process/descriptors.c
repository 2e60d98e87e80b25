/* Descriptors of the program: a thread that never calls MPI constantly opens and closes pipes, eventfds, epolls and
 * timerfds with data in them while epochs open and close; user callbacks open some, too. Each must stay intact. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "check.h"

enum Kind { kPipe, kEventfd, kEpoll, kTimerfd, kKinds };
enum { kHeld = 24 };

struct Held {
  enum Kind kind;
  int fd, other; /* `other`: a pipe's write end, what an epoll waits for */
  uint64_t number;
};

static struct Held make(enum Kind kind, uint64_t number) {
  struct Held held = {kind, -1, -1, number};
  if (kind == kPipe) {
    int ends[2];
    CHECK((number % 2 ? pipe(ends) : pipe2(ends, O_CLOEXEC)) == 0);
    held.fd = ends[0];
    held.other = ends[1];
    CHECK(write(held.other, &number, sizeof number) == sizeof number);
  } else if (kind == kEventfd) {
    held.fd = eventfd((unsigned)number, EFD_NONBLOCK);
  } else if (kind == kEpoll) {
    held.fd = number % 2 ? epoll_create(1) : epoll_create1(0);
    held.other = eventfd(1, 0);
    struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = number}};
    CHECK(epoll_ctl(held.fd, EPOLL_CTL_ADD, held.other, &event) == 0);
  } else {
    held.fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec far = {.it_value = {.tv_sec = 100000}, .it_interval = {.tv_sec = (time_t)number}};
    CHECK(timerfd_settime(held.fd, 0, &far, NULL) == 0);
  }
  CHECK(held.fd >= 0);
  return held;
}

static void check_and_close(struct Held held) {
  uint64_t number = 0;
  if (held.kind == kPipe || held.kind == kEventfd) {
    CHECK(read(held.fd, &number, sizeof number) == sizeof number && number == held.number);
  } else if (held.kind == kEpoll) {
    struct epoll_event event;
    CHECK(epoll_wait(held.fd, &event, 1, 0) == 1 && event.data.u64 == held.number);
  } else {
    struct itimerspec left;
    CHECK(timerfd_gettime(held.fd, &left) == 0 && left.it_interval.tv_sec == (time_t)held.number);
  }
  CHECK(close(held.fd) == 0);
  if (held.other >= 0) CHECK(close(held.other) == 0);
}

static atomic_int running = 1;

static void* churn(void* argument) {
  (void)argument;
  struct Held held[kHeld];
  uint64_t number = 1;
  for (int i = 0; i < kHeld; ++i, ++number) held[i] = make((enum Kind)(number % kKinds), number);
  unsigned seed = 7;
  while (running) {
    const int i = rand_r(&seed) % kHeld;
    check_and_close(held[i]);
    usleep((unsigned)rand_r(&seed) % 200);
    held[i] = make((enum Kind)(number % kKinds), number);
    ++number;
  }
  for (int i = 0; i < kHeld; ++i) check_and_close(held[i]);
  return NULL;
}

/* Opened inside MPI, by a user callback. */
static struct Held of_operation, of_attribute;
static int made = 0;

static void add(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] += ((int*)in)[i];
  if (!made) of_operation = make(kEventfd, 4242);
  made = 1;
}

static int copied(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm;
  (void)key;
  (void)extra;
  *(void**)out = in;
  *flag = 1;
  of_attribute = make(kPipe, 4343);
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int rank, size, key = -1;
  const int n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm copy;
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  MPI_Comm_create_keyval(copied, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  pthread_t thread;
  pthread_create(&thread, NULL, churn, NULL);
  for (int s = 0; going_on(s, n); ++s) {
    int mine = rank, sum = -1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    edge();
  }
  running = 0;
  pthread_join(thread, NULL);
  if (made) check_and_close(of_operation);
  check_and_close(of_attribute);
  MPI_Op_free(&op);
  MPI_Comm_free(&copy);
  MPI_Comm_free_keyval(&key);
  MPI_Finalize();
  printf("ok descriptors\n");
  return 0;
}
