/* objects THING: holds a kernel object across two gates, and checks after each whether it is as before. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"
#include "losses.h"

static int fd = -1;

static void an_eventfd(int round) {
  unsigned long count = 5, got = 0;
  if (round == 0) must((fd = eventfd(0, EFD_NONBLOCK)) >= 0, "eventfd");
  if (round && (read(fd, &got, 8) != 8 || got != 5)) loss("eventfd", "its count");
  must(write(fd, &count, 8) == 8, "eventfd");
}

static void a_semaphore_eventfd(int round) {
  unsigned long got = 0;
  if (round == 0) must((fd = eventfd(5, EFD_SEMAPHORE)) >= 0, "eventfd");
  if (round && (read(fd, &got, 8) != 8 || got != 1)) loss("eventfd", "that it counts as a semaphore");
}

/* Its initial count, as eventfd(2) takes it, has 32 bits. */
static void a_wide_eventfd(int round) {
  const unsigned long count = (1ul << 32) + 5;
  unsigned long got = 0;
  if (round == 0) must((fd = eventfd(0, 0)) >= 0 && write(fd, &count, 8) == 8, "eventfd");
  if (round && (read(fd, &got, 8) != 8 || got != count)) loss("eventfd", "its count");
  if (round) must(write(fd, &count, 8) == 8, "eventfd");
}

static void huge_pages(int round) {
  if (round == 0) must((fd = memfd_create("pages", MFD_HUGETLB)) >= 0, "memfd");
  if (fcntl(fd, F_GETFD) < 0) loss("memfd", "of huge pages");
}

/* As a file server has for each client. */
static int what_it_has;
static atomic_int has_it;
static void* with_its_own(void* unused) {
  must(!unshare(what_it_has), "unshare");
  has_it = 1;
  for (;;) pause();
  return unused;
}
static void a_thread_with_its_own(int what, int round) {
  pthread_t thread;
  what_it_has = what;
  if (round == 0) must(!pthread_create(&thread, NULL, with_its_own, NULL), "pthread_create");
  while (!has_it) sched_yield();
}
static void own_descriptors(int round) { a_thread_with_its_own(CLONE_FILES, round); }
static void a_deep_directory(int round) {
  char name[200] = "";
  memset(name, 'd', sizeof name - 1);
  for (int i = 0; round == 0 && i < 25; i++) must(!mkdir(name, 0700) && !chdir(name), "chdir");
}
static void own_directory(int round) { a_thread_with_its_own(CLONE_FS, round); }

/* The flags of what CRIU makes again by its content. */
static int has(int descriptor, int flags) { return (fcntl(descriptor, F_GETFL) & flags) == flags; }

static void descriptor_flags(int round) {
  static int event, timer, signals, poll_set, ends[2], file, duplicate;
  sigset_t none;
  sigemptyset(&none);
  if (round == 0) {
    must((event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) >= 0, "eventfd");
    must((timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) >= 0, "timerfd");
    must((signals = signalfd(-1, &none, SFD_NONBLOCK | SFD_CLOEXEC)) >= 0, "signalfd");
    must((poll_set = epoll_create1(EPOLL_CLOEXEC)) >= 0 && !pipe2(ends, O_NONBLOCK | O_CLOEXEC), "pipe2");
    must(fcntl(ends[0], F_SETPIPE_SZ, 1 << 18) == 1 << 18 && !fcntl(ends[1], F_SETFL, 0), "the pipe's size");
    must((file = open("flags", O_RDWR | O_CREAT | O_APPEND | O_DSYNC | O_NOATIME | O_CLOEXEC, 0600)) >= 0, "open");
    must((duplicate = dup(file)) >= 0 && write(file, "begin ", 6) == 6 && lseek(file, 0, SEEK_SET) == 0, "dup");
    must(!fcntl(ends[0], F_SETOWN, getpid()) && !fcntl(ends[0], F_SETSIG, SIGURG) &&
             !fcntl(ends[0], F_SETFL, O_NONBLOCK | O_ASYNC),
         "F_SETOWN");
    return;
  }
  const int all[] = {event, timer, signals, poll_set, ends[0], ends[1], file};
  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
    if (!(fcntl(all[i], F_GETFD) & FD_CLOEXEC)) loss("FD_CLOEXEC", i == 0 ? "of the eventfd" : "of another");
  if (fcntl(duplicate, F_GETFD) & FD_CLOEXEC) loss("FD_CLOEXEC", "of the duplicate, which had none");
  if (!has(event, O_NONBLOCK) || !has(timer, O_NONBLOCK) || !has(signals, O_NONBLOCK)) loss("O_NONBLOCK", "");
  if (!has(ends[0], O_NONBLOCK | O_ASYNC) || has(ends[1], O_NONBLOCK)) loss("pipe", "its flags");
  if (fcntl(ends[0], F_GETOWN) != getpid() || fcntl(ends[0], F_GETSIG) != SIGURG) loss("pipe", "its owner");
  if (fcntl(ends[0], F_GETPIPE_SZ) != 1 << 18) loss("pipe", "its size");
  if (!has(file, O_APPEND | O_DSYNC | O_NOATIME) || lseek(duplicate, 0, SEEK_CUR) != (round == 1 ? 0 : 7))
    loss("file", "its flags or place");
  if (write(file, "x", 1) != 1 || lseek(file, 7, SEEK_SET) != 7) loss("file", "it can't be appended to");
}

/* What fired once stays silent, what is edge-triggered is still there; a duplicate of the target has its own entry. */
static void epoll_flags(int round) {
  static int once, edges, twin;
  unsigned long count = 1;
  struct epoll_event got[4];
  if (round == 0) {
    struct epoll_event one = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 1},
                       two = {.events = EPOLLIN | EPOLLET, .data.u64 = 2},
                       three = {.events = EPOLLOUT | EPOLLEXCLUSIVE, .data.u64 = 3};
    must((fd = epoll_create1(0)) >= 0 && (once = eventfd(1, 0)) >= 0 && (edges = eventfd(0, 0)) >= 0, "epoll");
    must((twin = dup(edges)) >= 0 && !epoll_ctl(fd, EPOLL_CTL_ADD, once, &one) && epoll_wait(fd, got, 4, 0) == 1,
         "epoll");
    must(!epoll_ctl(fd, EPOLL_CTL_ADD, edges, &two) && !epoll_ctl(fd, EPOLL_CTL_ADD, twin, &three), "epoll");
    return;
  }
  must(write(edges, &count, 8) == 8, "eventfd");
  int seen = 0;
  const int n = epoll_wait(fd, got, 4, 0);
  for (int i = 0; i < n; i++) seen |= 1 << got[i].data.u64;
  if (seen & 1 << 1) loss("EPOLLONESHOT", "it fires again");
  if (seen != (1 << 2 | 1 << 3)) loss("EPOLLET or EPOLLEXCLUSIVE", "no event");
  for (int i = epoll_wait(fd, got, 4, 0) - 1; i >= 0; i--)
    if (got[i].data.u64 == 2) loss("EPOLLET", "it fires without an edge");
}

static void memfd_seals(int round) {
  static int sealed, last;
  if (round == 0) {
    must((sealed = memfd_create("sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC)) >= 0 && write(sealed, "word", 4) == 4,
         "memfd");
    must(!fcntl(sealed, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL), "seals");
    must((last = memfd_create("last", MFD_ALLOW_SEALING)) >= 0 && !fcntl(last, F_ADD_SEALS, F_SEAL_FUTURE_WRITE),
         "seals");
    return;
  }
  if (fcntl(sealed, F_GET_SEALS) != (F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL)) loss("memfd", "seals");
  if (!(fcntl(last, F_GET_SEALS) & F_SEAL_FUTURE_WRITE)) loss("memfd", "F_SEAL_FUTURE_WRITE");
  if (!(fcntl(sealed, F_GETFD) & FD_CLOEXEC)) loss("memfd", "FD_CLOEXEC");
}

static void lock_flags(int round) {
  static int shared, open_file;
  struct flock range = {.l_type = F_RDLCK, .l_start = 5, .l_len = 5}, other = range;
  if (round == 0) {
    must((shared = open("shared", O_RDWR | O_CREAT, 0600)) >= 0 && !flock(shared, LOCK_SH), "flock");
    must((open_file = open("ofd", O_RDWR | O_CREAT, 0600)) >= 0 && !fcntl(open_file, F_OFD_SETLK, &range),
         "F_OFD_SETLK");
    return;
  }
  const int again = open("shared", O_RDWR), again_ofd = open("ofd", O_RDWR);
  if (flock(again, LOCK_SH | LOCK_NB)) loss("flock", "it is exclusive now");
  if (!flock(again, LOCK_EX | LOCK_NB)) loss("flock", "it is gone");
  other.l_type = F_WRLCK;
  if (fcntl(again_ofd, F_OFD_GETLK, &other) || other.l_type != F_RDLCK) loss("F_OFD_SETLK", "it is gone");
  close(again), close(again_ofd);
}

static void an_epoll(int round) {
  static int event;
  unsigned long count = 1;
  struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = 0x1234567890}, got = {0};
  if (round == 0) {
    must((event = eventfd(0, 0)) >= 0 && (fd = epoll_create1(0)) >= 0, "epoll");
    must(!epoll_ctl(fd, EPOLL_CTL_ADD, event, &wanted) && write(event, &count, 8) == 8, "epoll");
  } else if (epoll_wait(fd, &got, 1, 0) != 1 || got.data.u64 != wanted.data.u64) {
    loss("epoll", "its event");
  }
}

static void a_signalfd(int round) {
  struct signalfd_siginfo got = {0};
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  if (round == 0) {
    sigprocmask(SIG_BLOCK, &set, NULL);
    must((fd = signalfd(-1, &set, SFD_NONBLOCK)) >= 0, "signalfd");
  } else if (read(fd, &got, sizeof(got)) != sizeof(got) || got.ssi_signo != SIGUSR1) {
    loss("signalfd", "its pending signal");
  }
  raise(SIGUSR1);
}

static void an_inotify(int round) {
  if (round == 0)
    must((fd = inotify_init1(IN_NONBLOCK)) >= 0 && inotify_add_watch(fd, "image", IN_CREATE) >= 0, "inotify");
}
static void an_unused_inotify(int round) {
  if (round == 0) must((fd = inotify_init1(IN_NONBLOCK)) >= 0, "inotify");
  const int watch = round ? inotify_add_watch(fd, "image", IN_CREATE) : -1;
  if (round && watch < 0) loss("inotify", "no watch can be added");
  if (watch >= 0) must(!inotify_rm_watch(fd, watch), "its watch");
}

static void a_memfd(int round) {
  static char* mapped;
  if (round == 0) {
    must((fd = memfd_create("grid", MFD_ALLOW_SEALING)) >= 0 && !ftruncate(fd, 8192), "memfd");
    mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(mapped != MAP_FAILED && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), "seal");
  } else {
    char got[8] = "";
    if (strcmp(mapped + 4096, round == 1 ? "round 0" : "round 1")) loss("memfd", mapped + 4096);
    if (pread(fd, got, 7, 4096) != 7 || strcmp(got, mapped + 4096)) loss("memfd", "descriptor and mapping differ");
    if (!ftruncate(fd, 0)) loss("memfd", "its seal");
  }
  strcpy(mapped + 4096, round == 0 ? "round 0" : "round 1");
}

static void a_named_semaphore(int round) {
  if (round == 0) must(sem_open("/semaphore", O_CREAT, 0600, 3) != SEM_FAILED, "sem_open");
}
/* As used by Python's multiprocessing. */
static void an_unlinked_semaphore(int round) {
  static sem_t* semaphore;
  int value = -1;
  if (round == 0) {
    must((semaphore = sem_open("/semaphore", O_CREAT, 0600, 3)) != SEM_FAILED && !sem_unlink("/semaphore"), "sem_open");
  } else if (sem_getvalue(semaphore, &value) || value != 3) {
    loss("sem_open", "its value");
  }
}

static void posix_memory(int round) {
  static char *named, *unlinked;
  if (round == 0) {
    int a = shm_open("/named", O_RDWR | O_CREAT, 0600), b = shm_open("/unlinked", O_RDWR | O_CREAT, 0600);
    must(a >= 0 && b >= 0 && !ftruncate(a, 4096) && !ftruncate(b, 4096), "shm_open");
    named = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a, 0);
    unlinked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, b, 0);
    must(named != MAP_FAILED && unlinked != MAP_FAILED && !shm_unlink("/unlinked"), "map");
    strcpy(named, "named");
    strcpy(unlinked, "unlinked");
    return;
  }
  if (strcmp(named, "named")) loss("shm_open", named);
  if (strcmp(unlinked, "unlinked")) loss("shm_unlink", unlinked);
  fd = shm_open("/named", O_RDONLY, 0);
  char got[8] = "";
  if (fd < 0 || read(fd, got, 5) != 5 || strcmp(got, "named")) loss("shm_open again", got);
}

static void timers(int round) {
  static timer_t timer;
  struct itimerspec at = {.it_value.tv_sec = 5000};
  struct itimerval real = {.it_value.tv_sec = 6000};
  struct sigevent by_signal = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
  if (round == 0) {
    must(!timer_create(CLOCK_MONOTONIC, &by_signal, &timer) && !timer_settime(timer, 0, &at, NULL), "timer_create");
    must(!setitimer(ITIMER_REAL, &real, NULL), "setitimer");
    return;
  }
  if (timer_gettime(timer, &at) || at.it_value.tv_sec < 4000 || at.it_value.tv_sec > 5000) loss("timer_create", "time");
  if (getitimer(ITIMER_REAL, &real) || real.it_value.tv_sec < 5000) loss("setitimer", "time");
}

static void locks(int round) {
  static int whole;
  struct flock range = {.l_type = F_WRLCK, .l_start = 10, .l_len = 10};
  if (round == 0) {
    must((fd = open("locked", O_RDWR | O_CREAT, 0600)) >= 0 && (whole = open("whole", O_RDWR | O_CREAT, 0600)) >= 0,
         "open");
    must(!fcntl(fd, F_SETLK, &range) && !flock(whole, LOCK_EX), "lock");
    return;
  }
  const int again = open("whole", O_RDWR);
  if (!flock(again, LOCK_EX | LOCK_NB)) loss("flock", "another may have it");
  close(again);
  const pid_t child = fork();
  if (child == 0) _exit(fcntl(fd, F_GETLK, &range) || range.l_type != F_WRLCK);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status) loss("fcntl", "another may have it");
}

static void a_pipe(int round) {
  static int ends[2];
  char got[8] = "";
  if (round == 0) must(!pipe(ends), "pipe");
  if (round && (read(ends[0], got, 4) != 4 || strcmp(got, "word"))) loss("pipe", got);
  must(write(ends[1], "word", 4) == 4, "pipe");
}

static void a_packet_pipe(int round) {
  static int ends[2];
  char got[8] = "";
  if (round == 0)
    must(!pipe2(ends, O_DIRECT) && write(ends[1], "one", 3) == 3 && write(ends[1], "two", 3) == 3, "pipe2");
  if (round && (read(ends[0], got, 8) != 3)) loss("pipe2", "its packets");
}

/* Below a limit that the program has lowered, as the hard limit, too. */
static void last_descriptor(int round) {
  static struct rlimit limit;
  if (round == 0) {
    must(!getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    limit.rlim_cur = limit.rlim_max = 200;
    must(!setrlimit(RLIMIT_NOFILE, &limit) && dup2(open("/proc/self/status", O_RDONLY), 199) == 199,
         "the last descriptor");
  }
  char got[64] = "";
  struct rlimit now;
  if (pread(199, got, 5, 0) != 5 || strcmp(got, "Name:")) loss("the last descriptor", got);
  if (getrlimit(RLIMIT_NOFILE, &now) || now.rlim_cur != 200 || now.rlim_max != 200)
    loss("the limit of descriptors", "");
}

/* What is the new pod's, as docs/what-moves.md says, and what isn't. */
static void surroundings(int round) {
  static char host[256], of_environment[256];
  static cpu_set_t all;
  char now[256] = "";
  cpu_set_t one, cpus;
  const char* variable = getenv("HOSTNAME");
  must(gethostname(now, sizeof now - 1) == 0 && !sched_getaffinity(0, sizeof cpus, &cpus), "gethostname");
  if (round == 0) {
    all = cpus;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
      if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    must(!sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
    snprintf(of_environment, sizeof of_environment, "%s", variable ? variable : "");
  } else {
    if (strcmp(now, host) == 0) loss("the new pod's name", now);
    if (strcmp(variable ? variable : "", of_environment) != 0) loss("HOSTNAME", variable);
    if (!CPU_EQUAL(&cpus, &all)) loss("the CPUs of the new pod", "");
  }
  snprintf(host, sizeof host, "%s", now);
}

static void of_proc(int round) {
  char got[64] = "";
  if (round == 0) must((fd = open("/proc/self/status", O_RDONLY)) >= 0, "status");
  if (pread(fd, got, 5, 0) != 5 || strcmp(got, "Name:")) loss("/proc/self/status", got);
}
static void of_sys(int round) {
  char got[64] = "";
  if (round == 0) must((fd = open("/sys/devices/system/cpu/online", O_RDONLY)) >= 0, "online");
  if (pread(fd, got, 63, 0) <= 0) loss("/sys/devices/system/cpu/online", "empty");
}
static void devices(int round) {
  static int zero;
  char got = 1;
  if (round == 0) must((fd = open("/dev/urandom", O_RDONLY)) >= 0 && (zero = open("/dev/zero", O_RDWR)) >= 0, "open");
  if (read(fd, &got, 1) != 1 || read(zero, &got, 1) != 1 || got) loss("devices", "they give nothing");
}

static void a_zombie(int round) {
  static pid_t child;
  int status = 0;
  if (round == 0) {
    if ((child = fork()) == 0) _exit(7);
    siginfo_t info;
    must(child > 0 && !waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), "fork");
  }
  if (round == 2 && (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)) loss("child", "its status");
}

/* Objects that prevent a move. */
static void a_child(int round) {
  if (round == 0 && fork() == 0)
    for (;;) pause();
}
static void an_attached_segment(int round) {
  static char* segment;
  if (round == 0) {
    const int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
    segment = shmat(id, NULL, 0);
    must(id >= 0 && segment != (char*)-1 && !shmctl(id, IPC_RMID, NULL), "shmget");
    strcpy(segment, "segment");
  }
  if (strcmp(segment, "segment")) loss("shmat", segment);
}
static void a_segment(int round) {
  static int id;
  if (round == 0) must((id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600)) >= 0, "shmget");
  if (round && shmat(id, NULL, 0) == (void*)-1) loss("shmget", "it is gone");
}
static void a_semaphore_set(int round) {
  static int id;
  if (round == 0) must((id = semget(IPC_PRIVATE, 2, IPC_CREAT | 0600)) >= 0 && !semctl(id, 1, SETVAL, 3), "semget");
  if (round && semctl(id, 1, GETVAL) != 3) loss("semget", "it is gone");
}
static void a_message_queue(int round) {
  static int id;
  if (round == 0) must((id = msgget(IPC_PRIVATE, IPC_CREAT | 0600)) >= 0, "msgget");
  struct msqid_ds info;
  if (round && msgctl(id, IPC_STAT, &info)) loss("msgget", "it is gone");
}
static void an_open_queue(int round) {
  if (round == 0) must((fd = mq_open("/queue", O_RDWR | O_CREAT, 0600, NULL)) >= 0, "mq_open");
  must(mq_send(fd, "x", 1, 1) == 0, "mq_send");
}
static void a_closed_queue(int round) {
  if (round == 0) an_open_queue(0);
  if (round == 0) close(fd);
  if (round && mq_open("/queue", O_RDWR) < 0) loss("mq_open", "it is gone");
}
static void a_udp_socket(int round) {
  if (round == 0) must((fd = socket(AF_INET, SOCK_DGRAM, 0)) >= 0, "socket");
}
static void a_unix_pair(int round) {
  int ends[2];
  if (round == 0) must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
}
static void a_netlink_socket(int round) {
  if (round == 0) must((fd = socket(AF_NETLINK, SOCK_RAW, 0)) >= 0, "socket");
}
static void a_pidfd(int round) {
  if (round == 0) must((fd = (int)syscall(SYS_pidfd_open, getpid(), 0)) >= 0, "pidfd");
  struct pollfd ended = {.fd = fd, .events = POLLIN};
  if (poll(&ended, 1, 0) != 0) loss("pidfd", "it reports that the process has ended");
}
static void a_terminal(int round) {
  static int other;
  char got[8] = "";
  if (round == 0) must(!openpty(&fd, &other, NULL, NULL, NULL), "openpty");
  if (round && (write(other, "word", 4) != 4 || read(fd, got, 4) != 4 || strcmp(got, "word"))) loss("openpty", got);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(int round);
  } kThings[] = {{"eventfd", an_eventfd},
                 {"eventfd-semaphore", a_semaphore_eventfd},
                 {"eventfd-wide", a_wide_eventfd},
                 {"own-descriptors", own_descriptors},
                 {"own-directory", own_directory},
                 {"deep-directory", a_deep_directory},
                 {"huge-pages", huge_pages},
                 {"descriptor-flags", descriptor_flags},
                 {"epoll-flags", epoll_flags},
                 {"memfd-seals", memfd_seals},
                 {"lock-flags", lock_flags},
                 {"packet-pipe", a_packet_pipe},
                 {"epoll", an_epoll},
                 {"signalfd", a_signalfd},
                 {"inotify", an_inotify},
                 {"memfd", a_memfd},
                 {"posix-memory", posix_memory},
                 {"timers", timers},
                 {"locks", locks},
                 {"pipe", a_pipe},
                 {"last-descriptor", last_descriptor},
                 {"surroundings", surroundings},
                 {"proc", of_proc},
                 {"sys", of_sys},
                 {"devices", devices},
                 {"zombie", a_zombie},
                 {"child", a_child},
                 {"attached-segment", an_attached_segment},
                 {"segment", a_segment},
                 {"semaphore-set", a_semaphore_set},
                 {"message-queue", a_message_queue},
                 {"open-queue", an_open_queue},
                 {"closed-queue", a_closed_queue},
                 {"named-semaphore", a_named_semaphore},
                 {"unlinked-semaphore", an_unlinked_semaphore},
                 {"inotify-unused", an_unused_inotify},
                 {"udp", a_udp_socket},
                 {"unix-pair", a_unix_pair},
                 {"netlink", a_netlink_socket},
                 {"pidfd", a_pidfd},
                 {"terminal", a_terminal}};
  for (size_t i = 0; i < sizeof(kThings) / sizeof(*kThings); i++) {
    if (argc != 2 || strcmp(argv[1], kThings[i].name) != 0) continue;
    for (int round = 0; round < 3; round++) {
      if (round) stop_until_next_epoch();
      kThings[i].run(round);
    }
    return lost;
  }
  return 98;
}
