/* memory: has memory whose properties criu doesn't keep, across two gates: what a child gets empty, and what is locked page by page. */
#define _GNU_SOURCE
#include <ctype.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"
#include "losses.h"

enum { kPage = 4096, kDroppable = 0x08 };

static char *wiped, *droppable, *by_page;

static char* make(int flags) {
  char* const page = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
  if (page == MAP_FAILED) return NULL;
  memset(page, 'x', kPage);
  return page;
}

/* What smaps says of a page: " rd wr …". */
static void flags_of(const char* page, char* flags, size_t room) {
  FILE* const smaps = fopen("/proc/self/smaps", "r");
  char line[512];
  int here = 0;
  unsigned long start, end;
  must(smaps != NULL, "smaps");
  while (fgets(line, sizeof line, smaps)) {
    if (isxdigit(line[0]) && sscanf(line, "%lx-%lx ", &start, &end) == 2)
      here = start <= (unsigned long)page && (unsigned long)page < end;
    if (here && strncmp(line, "VmFlags:", 8) == 0) snprintf(flags, room, "%s", line + 8);
  }
  fclose(smaps);
}

static void expect(const char* page, const char* flag) {
  char flags[256] = "";
  flags_of(page, flags, sizeof flags);
  if (strstr(flags, flag) == NULL) loss(flag, flags);
}

/* glibc from 2.41 on draws them without a system call, from memory that a child gets empty. */
static void random_numbers(void) {
  char own[32], of_child[32] = "";
  int ends[2], status;
  must(getrandom(own, sizeof own, 0) == sizeof own && pipe(ends) == 0, "getrandom");
  const pid_t child = fork();
  if (child == 0) _exit(getrandom(of_child, sizeof of_child, 0) < 0 || write(ends[1], of_child, sizeof of_child) < 0);
  must(getrandom(own, sizeof own, 0) == sizeof own, "getrandom");
  must(read(ends[0], of_child, sizeof of_child) == sizeof of_child && waitpid(child, &status, 0) == child, "the child");
  close(ends[0]);
  close(ends[1]);
  if (memcmp(own, of_child, sizeof own) == 0) loss("random numbers", "a child draws its parent's");
}

int main(void) {
  must((wiped = make(MAP_PRIVATE)) && !madvise(wiped, kPage, MADV_WIPEONFORK), "MADV_WIPEONFORK");
  must((by_page = make(MAP_PRIVATE)) && !mlock2(by_page, kPage, MLOCK_ONFAULT), "mlock2");
  droppable = make(kDroppable); /* NULL: Linux before 6.11 */
  for (int round = 0; round < 3; ++round) {
    if (round) stop_until_next_epoch();
    random_numbers();
    expect(wiped, " wf");
    expect(by_page, " lf");
    if (wiped[0] != 'x') loss("what is wiped on fork", "in the parent");
    if (droppable) {
      expect(droppable, " dp");
      if (round && droppable[0]) loss("droppable memory", "it is as before");
      droppable[0] = 'x';
    }
  }
  return lost;
}
