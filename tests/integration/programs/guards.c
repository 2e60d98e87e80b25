/* guards [locked]: guard pages (MADV_GUARD_INSTALL) in memory of each kind, across two gates; it checks after each that they guard, that
 * the pages beside them hold their content, and that no thread has noticed anything. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"
#include "losses.h"

enum { kPage = 4096, kPages = 64, kInstall = 102, kKinds = 5 };

static sigjmp_buf after_touch;
static siginfo_t fault;
static void on_fault(int signal, siginfo_t* info, void* unused) {
  (void)signal, (void)unused;
  fault = *info;
  siglongjmp(after_touch, 1);
}

static int guards(volatile char* page) {
  if (sigsetjmp(after_touch, 1)) return fault.si_addr == (void*)page && fault.si_code == SEGV_MAPERR;
  *page = 1;
  return 0;
}

/* Every second page of each is a guard. */
static char* memory[kKinds];
static void install(int kind, char* pages) {
  memory[kind] = pages;
  for (int i = 0; i < kPages; i++) pages[i * kPage] = (char)(kind + i + 1);
  for (int i = 1; i < kPages; i += 2) must(!madvise(pages + i * kPage, kPage, kInstall), "MADV_GUARD_INSTALL");
}
static void check(const char* which) {
  int guards_lost = 0, pages_lost = 0;
  for (int kind = 0; kind < kKinds; kind++)
    for (int i = 0; i < kPages; i++) {
      char* const page = memory[kind] + i * kPage;
      if (i % 2) guards_lost += !guards(page);
      if (i % 2 == 0) pages_lost += *page != (char)(kind + i + 1);
    }
  if (guards_lost) loss("guard pages", which);
  if (pages_lost) loss("pages beside them", which);
}

static char* map(int flags, int file) {
  char* const pages = mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, flags, file, 0);
  must(pages != MAP_FAILED, "mmap");
  return pages;
}

/* Its thread waits below, in a call that a stop must not end. */
static atomic_int waits, woken;
static void* wait_on_guarded_stack(void* unused) {
  char room[(kPages + 1) * kPage];
  install(1, (char*)(((unsigned long)room + kPage - 1) / kPage * kPage));
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  int ends[2];
  char byte;
  must(!pipe(ends), "pipe");
  for (waits = 1;; woken++)
    if (read(ends[0], &byte, 1) >= 0) break;
  return unused;
}

static atomic_long computed;
static void* compute(void* unused) {
  for (;;) computed++;
  return unused;
}

static volatile sig_atomic_t alarms;
static void on_signal(int signal) { alarms += signal == SIGUSR1; }

int main(int argc, char** argv) {
  struct sigaction on_touch = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &on_touch, NULL);
  signal(SIGUSR1, on_signal);
  char room[(kPages + 1) * kPage];
  install(0, (char*)(((unsigned long)room + kPage - 1) / kPage * kPage));
  pthread_t thread;
  must(!pthread_create(&thread, NULL, wait_on_guarded_stack, NULL), "pthread_create");
  must(!pthread_create(&thread, NULL, compute, NULL), "pthread_create");
  const int file = open("guarded", O_RDWR | O_CREAT, 0600);
  must(file >= 0 && !ftruncate(file, kPages * kPage), "guarded");
  install(2, map(MAP_PRIVATE | MAP_ANONYMOUS, -1));
  install(3, map(MAP_SHARED | MAP_ANONYMOUS, -1));
  install(4, map(MAP_SHARED, file));
  while (!waits) sched_yield();
  if (argc > 1 && strcmp(argv[1], "locked") == 0) mlock(memory[2], 2 * kPage); /* it fails to read the guard page */
  check("before");
  for (int round = 1; round <= 2; round++) {
    const long before = computed;
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &held, NULL);
    raise(SIGUSR1);
    stop_until_next_epoch();
    if (alarms != round - 1) loss("SIGUSR1", "it isn't blocked any more");
    pthread_sigmask(SIG_UNBLOCK, &held, NULL);
    check(round == 1 ? "at the first gate" : "at the second gate");
    if (woken) loss("read", "it has returned");
    if (alarms != round) loss("SIGUSR1", "it was lost or repeated");
    for (const time_t end = time(NULL) + 60; computed == before && time(NULL) < end;) sched_yield();
    if (computed == before) loss("a thread", "it doesn't compute any more");
  }
  exit(lost); /* not by a return: what runs after it would use the guarded pages of this frame as its stack */
}
