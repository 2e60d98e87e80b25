/* A file that is open while the rank moves keeps its device and inode number, by which HDF5 tells that it is open already. The test doesn't
 * move the program: whenever it has been stopped, it finds its file copied, as another machine has it. argv: supersteps, directory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "check.h"

static const char* directory;
static int fd, stops = 0;
static struct stat seen;

static const char* in_directory(const char* name) {
  static char paths[2][4096];
  static int which = 0;
  which = !which;
  snprintf(paths[which], sizeof paths[which], "%s/%s.%d", directory, name, (int)getpid());
  return paths[which];
}

static int create(const char* path) {
  const int made = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(made >= 0 && write(made, "data", 4) == 4);
  return made;
}

/* The shim stops the program by this function. The file that was open has another inode then, and another file the one that it had. */
int raise(int number) {
  const int rc = (int)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
  if (number != SIGSTOP) return rc;
  ++stops;
  const int copy = create(in_directory("copy"));
  CHECK(rename(in_directory("file"), in_directory("other")) == 0 &&
        rename(in_directory("copy"), in_directory("file")) == 0);
  CHECK(syscall(SYS_dup3, copy, fd, 0) == fd && close(copy) == 0); /* dup2 would be MPI's here */
  return rc;
}

static int is_same(const struct stat* a, const struct stat* b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int s = 0;
  directory = argv[2];
  fd = create(in_directory("file"));
  CHECK(fstat(fd, &seen) == 0);
  for (const int n = supersteps(argc, argv); going_on(s, n); ++s) {
    struct stat now;
    struct statx more;
    CHECK(fstat(fd, &now) == 0 && is_same(&now, &seen));
    CHECK(stat(in_directory("file"), &now) == 0 && is_same(&now, &seen) && now.st_size == 4);
    CHECK(lstat(in_directory("file"), &now) == 0 && is_same(&now, &seen));
    CHECK(fstatat(AT_FDCWD, in_directory("file"), &now, 0) == 0 && is_same(&now, &seen));
    CHECK(statx(AT_FDCWD, in_directory("file"), 0, STATX_BASIC_STATS, &more) == 0);
    CHECK(makedev(more.stx_dev_major, more.stx_dev_minor) == seen.st_dev && more.stx_ino == seen.st_ino);
    const int again = open(in_directory("file"), O_RDONLY);
    CHECK(fstat(again, &now) == 0 && is_same(&now, &seen) && close(again) == 0);
    if (stops > 0) CHECK(stat(in_directory("other"), &now) == 0 && !is_same(&now, &seen));
    edge();
  }
  CHECK(stops > 0);
  MPI_Finalize();
  printf("ok same_files %d\n", s);
  return 0;
}
