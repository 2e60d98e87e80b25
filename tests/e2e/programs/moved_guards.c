/* moved_guards SUPERSTEPS [FILE]: until rank 0 finds FILE, a computation between guard pages, as glibc 2.42 puts them below threads'
 * stacks (MADV_GUARD_INSTALL), in memory of the main thread and on the stack of another. Each superstep touches every guard. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "told.h"

enum { kPage = 4096, kPages = 64, kInstall = 102, kWords = kPage / sizeof(uint64_t) };

static int rank;
static sigjmp_buf after_touch;
static void on_fault(int signal) { siglongjmp(after_touch, signal); }

static void fail(const char* what) {
  printf("rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int guards(volatile char* page) {
  if (sigsetjmp(after_touch, 1)) return 1;
  *page = 1;
  return 0;
}

/* Every second page. */
static void install(char* pages) {
  for (int i = 0; i < kPages; i++) memset(pages + i * kPage, rank + i + 1, kPage);
  for (int i = 1; i < kPages; i += 2)
    if (madvise(pages + i * kPage, kPage, kInstall)) fail("MADV_GUARD_INSTALL");
}

static uint64_t next(char* pages, uint64_t seed) {
  for (int i = 0; i < kPages; i++) {
    uint64_t* const words = (uint64_t*)(pages + i * kPage);
    if (i % 2 && !guards(pages + i * kPage)) fail("a guard page doesn't guard");
    for (size_t k = 0; i % 2 == 0 && k < kWords; k++) words[k] = seed = (seed ^ words[k]) * 0x9e3779b97f4a7c15u + k;
  }
  return seed;
}

static char* on_stack;
static pthread_barrier_t ready;
static void* hold_stack(void* unused) {
  char room[(kPages + 1) * kPage];
  on_stack = (char*)(((uintptr_t)room + kPage - 1) / kPage * kPage);
  install(on_stack);
  pthread_barrier_wait(&ready);
  for (;;) nanosleep(&(struct timespec){1000, 0}, NULL);
  return unused;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  signal(SIGSEGV, on_fault);
  char* const mapped = mmap(NULL, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail("mmap");
  install(mapped);
  pthread_t thread;
  pthread_barrier_init(&ready, NULL, 2);
  if (pthread_create(&thread, NULL, hold_stack, NULL)) fail("pthread_create");
  pthread_barrier_wait(&ready);

  const long supersteps = argc > 1 ? atol(argv[1]) : 100;
  uint64_t mine = 0, all = 0;
  long s = 0;
  for (; s < supersteps && !told(argc > 2 ? argv[2] : NULL); ++s) {
    for (const clock_t until = clock() + CLOCKS_PER_SEC / 100; clock() < until;) continue;
    mine = next(on_stack, next(mapped, all + (uint64_t)rank));
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) printf("OK guards %ld %016lX\n", s, (unsigned long)all);
  MPI_Finalize();
  return 0;
}
