/* A program in the state in which the shim leaves it at a gate. It computes a step, prints it, and stops itself after
 * every second one until the next epoch exists (a number in /run/bsp/epoch): criu lifts the stop to work inside it, so
 * when criu dies it may run for a moment. It checks its own memory, threads and files in each step, so that a move
 * that loses anything ends it with a message. Arguments are key=value:
 *   mb=N        private memory, filled and verified
 *   steps=N     exits after this many steps (default 8)
 *   exit=N      exit status
 *   threads=N   threads that count independently
 *   shm=PATH    a file mapped shared; it has a second name PATH.link
 *   deleted=PATH a file kept open after unlink
 *   file=PATH   appended to in each step, reread from the start each time
 *   dir=PATH    created first
 *   noise=N     bytes written to stdout in each step besides the line
 *   socket=1, epoll=1, child=1   keeps such an object open
 *   lock=1      holds flock on file=
 *   closed=012  closes these standard streams
 *   own=1       has its own umask, limits, signals, priority and directory */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate.h"

static int argc_;
static char** argv_;
static const char* text(const char* key, const char* fallback) {
  size_t n = strlen(key);
  for (int i = 1; i < argc_; i++)
    if (strncmp(argv_[i], key, n) == 0 && argv_[i][n] == '=') return argv_[i] + n + 1;
  return fallback;
}
static long number(const char* key, long fallback) {
  const char* value = text(key, NULL);
  return value ? atol(value) : fallback;
}
static void die(const char* why) {
  fprintf(stderr, "gated: %s (%s)\n", why, strerror(errno));
  exit(99);
}

static volatile long counters[64];
static void* count(void* at) {
  for (;;) {
    ++*(volatile long*)at;
    usleep(500);
  }
  return NULL;
}

static void have_attributes_of_its_own(void) {
  struct rlimit files = {256, 512}, core = {0, 0};
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGHUP);
  umask(027);
  signal(SIGUSR2, SIG_IGN);
  FILE* score = fopen("/proc/self/oom_score_adj", "w");
  if (!score || fputs("700", score) < 0 || fclose(score)) die("oom_score_adj");
  errno = 0; /* the tests may run under nice(1) */
  if (setrlimit(RLIMIT_NOFILE, &files) || setrlimit(RLIMIT_CORE, &core) || chdir("/tmp") ||
      (nice(3) == -1 && errno != 0) || sigprocmask(SIG_BLOCK, &blocked, NULL))
    die("own");
}

static unsigned char pattern(size_t i, long step) { return (unsigned char)((i * 2654435761u >> 13) ^ (size_t)step); }

int main(int argc, char** argv) {
  argc_ = argc;
  argv_ = argv;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (number("own", 0)) have_attributes_of_its_own();
  for (const char* fd = text("closed", ""); *fd; fd++) close(*fd - '0');
  const size_t size = (size_t)number("mb", 1) << 20;
  unsigned char* memory = malloc(size);
  for (size_t i = 0; i < size; i++) memory[i] = pattern(i, 0);
  const long threads = number("threads", 0);
  for (long t = 0; t < threads; t++) {
    pthread_t id;
    if (pthread_create(&id, NULL, count, (void*)&counters[t])) die("thread");
  }
  long* shared = NULL;
  const char* shm = text("shm", NULL);
  if (shm) {
    char link_name[256];
    int fd = open(shm, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, 1 << 20)) die(shm);
    shared = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    snprintf(link_name, sizeof(link_name), "%s.link", shm);
    if (shared == MAP_FAILED || link(shm, link_name)) die(shm);
    close(fd);
  }
  int deleted = -1;
  if (text("deleted", NULL)) {
    deleted = open(text("deleted", NULL), O_RDWR | O_CREAT, 0600);
    if (deleted < 0 || unlink(text("deleted", NULL))) die("deleted");
  }
  FILE* file = NULL;
  if (text("dir", NULL) && mkdir(text("dir", NULL), 0700)) die("dir");
  if (text("file", NULL)) {
    file = fopen(text("file", NULL), "w+");
    if (!file) die(text("file", NULL));
    if (number("lock", 0) && flock(fileno(file), LOCK_EX)) die("flock");
  }
  if (number("socket", 0) && socket(AF_INET, SOCK_STREAM, 0) < 0) die("socket");
  if (number("epoll", 0)) {
    int ends[2];
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    if (epoll < 0 || pipe(ends) || epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event)) die("epoll");
  }
  if (number("child", 0) && fork() == 0)
    for (;;) pause();

  const long steps = number("steps", 8);
  for (long step = 1; step <= steps; step++) {
    for (size_t i = 0; i < size; i += 1 + (size >> 16)) {
      if (memory[i] != pattern(i, 0)) die("memory changed");
    }
    const long before = threads ? counters[threads - 1] : 0;
    for (int i = 0; threads && counters[threads - 1] == before && i < 20000; i++) usleep(500);
    if (threads && counters[threads - 1] == before) die("a thread no longer runs");
    if (shared) {
      long linked = -1;
      char link_name[256];
      snprintf(link_name, sizeof(link_name), "%s.link", shm);
      int fd = open(link_name, O_RDONLY);
      if (fd < 0 || pread(fd, &linked, sizeof(linked), 0) != sizeof(linked)) die(link_name);
      close(fd);
      if (*shared != step - 1 || linked != step - 1) die("shared memory lost");
      *shared = step;
    }
    if (deleted >= 0) {
      long seen = 0;
      if (step > 1 && (pread(deleted, &seen, sizeof(seen), 4096) != sizeof(seen) || seen != step - 1))
        die("deleted file lost");
      if (pwrite(deleted, &step, sizeof(step), 4096) != sizeof(step)) die("deleted file");
    }
    if (file) {
      long seen = 0, last = 0;
      rewind(file);
      while (fscanf(file, "%ld", &seen) == 1) last = seen;
      if (last != step - 1) die("file lost");
      fseek(file, 0, SEEK_END);
      fprintf(file, "%ld\n", step);
      fflush(file);
    }
    for (long i = 0; i < number("noise", 0); i++) putchar(i % 64 == 63 ? '\n' : 'a' + (int)(i % 26));
    printf("step %ld of pid %d\n", step, (int)getpid());
    fprintf(stderr, "checked %ld\n", step);
    if (step % 2 == 0 && step < steps) stop_until_next_epoch();
  }
  return (int)number("exit", 0);
}
