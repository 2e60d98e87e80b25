/* first_moves SUPERSTEPS WHAT: what the program changes after MPI_Init and MPI's next session depends on. An ordinary user does it: the
 * limit of processes, and the modes of directories, hold for this program. */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "check.h"

extern char** environ;

/* Keeps the effective user, to whom the run directory belongs. */
static void become_ordinary(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[2];
  CHECK(setresuid(1000, 0, 0) == 0 && syscall(SYS_capget, &header, sets) == 0);
  const int dropped[] = {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_RESOURCE, CAP_SYS_ADMIN, CAP_IPC_LOCK};
  for (size_t i = 0; i < sizeof dropped / sizeof *dropped; ++i) {
    sets[dropped[i] / 32].effective &= ~(1u << dropped[i] % 32);
    sets[dropped[i] / 32].permitted &= ~(1u << dropped[i] % 32);
  }
  CHECK(syscall(SYS_capset, &header, sets) == 0);
}

static int is(const char* what, const char* wanted) { return !strcmp(what, wanted); }

static mode_t mask_now(void) {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

static int is_cleared(void) { return environ[0] != NULL && is(environ[0], "OWN=value") && environ[1] == NULL; }

/* Neither more than before nor less. */
static struct rlimit limit_of(int resource) {
  struct rlimit limit;
  CHECK(getrlimit(resource, &limit) == 0);
  return limit;
}
static int is_limit(int resource, struct rlimit wanted) {
  const struct rlimit now = limit_of(resource);
  return now.rlim_cur == wanted.rlim_cur && now.rlim_max == wanted.rlim_max;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  const char* what = argc > 2 ? argv[2] : "";
  become_ordinary();
  struct rlimit limit = limit_of(RLIMIT_NPROC), file_size = limit_of(RLIMIT_FSIZE), locked = limit_of(RLIMIT_MEMLOCK);
  if (is(what, "umask")) umask(0177);
  if (is(what, "tmpdir")) setenv("TMPDIR", "/proc/nowhere/dir", 1);
  if (is(what, "processes")) limit.rlim_cur = 1;
  if (is(what, "no processes")) limit.rlim_cur = limit.rlim_max = 1;
  CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
  if (is(what, "files")) file_size.rlim_cur = 0;
  if (is(what, "no files")) file_size.rlim_cur = file_size.rlim_max = 4096;
  CHECK(setrlimit(RLIMIT_FSIZE, &file_size) == 0);
  if (is(what, "locked")) locked.rlim_cur = locked.rlim_max = 65536;
  CHECK(setrlimit(RLIMIT_MEMLOCK, &locked) == 0);
  if (is(what, "locked")) CHECK(mlockall(MCL_FUTURE) == 0);
  if (is(what, "death")) CHECK(prctl(PR_SET_PDEATHSIG, SIGUSR2) == 0);
  prctl(PR_SET_DUMPABLE, is(what, "dumpable") ? 0 : 1);
  if (is(what, "clearenv")) clearenv(), setenv("OWN", "value", 1);
  int s = 0, signal = -1;
  for (; going_on(s, n); ++s) {
    edge();
    CHECK(mask_now() == (is(what, "umask") ? 0177 : 022));
    if (is(what, "tmpdir")) CHECK(is(getenv("TMPDIR"), "/proc/nowhere/dir"));
    CHECK(is_limit(RLIMIT_NPROC, limit) && is_limit(RLIMIT_FSIZE, file_size) && is_limit(RLIMIT_MEMLOCK, locked));
    CHECK(prctl(PR_GET_PDEATHSIG, &signal) == 0 && signal == (is(what, "death") ? SIGUSR2 : 0));
    CHECK(prctl(PR_GET_DUMPABLE) == (is(what, "dumpable") ? 0 : 1));
    if (is(what, "clearenv")) CHECK(is_cleared());
  }
  MPI_Finalize();
  printf("ok first moves %d\n", s);
  return 0;
}
