/* blocked_files SUPERSTEPS THING: has an MPI file open that can't be closed at a gate, until some rank gets SIGUSR1.
 * Then it runs SUPERSTEPS supersteps more, or until another SIGUSR1. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "check.h"
#include "failing_open.h"

static volatile sig_atomic_t enough = 0;
static void on_signal(int number) { (void)number, ++enough; }

/* Storage that has failed to write a file. Linux reports this once to each of those who have it open. */
static ino_t lost;
static int told;
int fsync(int fd) { /* replaces the C library's, for MPI too */
  struct stat info;
  if (lost == 0 || told || fstat(fd, &info) != 0 || info.st_ino != lost) return (int)syscall(SYS_fsync, fd);
  told = 1;
  errno = EIO;
  return -1;
}

static int errors;
static void on_error(MPI_File* file, int* code, ...) { errors += *file != MPI_FILE_NULL && *code != MPI_SUCCESS; }

static void lose(const char* path, MPI_File file) {
  struct stat info;
  MPI_Errhandler handler;
  MPI_File_create_errhandler(on_error, &handler);
  MPI_File_set_errhandler(file, handler);
  MPI_Errhandler_free(&handler);
  MPI_File_write_at(file, 0, &errors, 1, MPI_INT, MPI_STATUS_IGNORE);
  CHECK(stat(path, &info) == 0);
  lost = info.st_ino;
}

/* The program learns of it as if there had been no gate. */
static void learn_of_loss(MPI_File file) {
  CHECK(errors == 0);
  CHECK(MPI_File_sync(file) != MPI_SUCCESS && errors == 1);
  CHECK(MPI_File_sync(file) == MPI_SUCCESS && errors == 1);
}

/* POSIX locks of a process end when it closes any of its descriptors of the file. */
static int locking = -1;

static void set_lock(short type) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = 1000, .l_len = 10};
  CHECK(fcntl(locking, F_SETLK, &lock) == 0);
}

static void expect_lock(void) { /* a lock of another kind would conflict with it */
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1000, .l_len = 10};
  CHECK(fcntl(locking, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK && lock.l_pid == getpid());
}

static int locks_unread; /* the system has no memory for what shows them */
static int error_of_open(const char* path) {
  return locks_unread && strncmp(path, "/proc/self/fdinfo/", strlen("/proc/self/fdinfo/")) == 0 ? ENOMEM : 0;
}

enum { kLimit = 256 };
static int taken[kLimit];
static struct rlimit limit;

static void take_all_descriptors(void) {
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const struct rlimit low = {kLimit, limit.rlim_max};
  CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
  for (int fd = dup(2); fd >= 0; fd = dup(2)) taken[fd] = 1;
  CHECK(errno == EMFILE);
}

static void return_all_descriptors(void) {
  for (int fd = 0; fd < kLimit; ++fd)
    if (taken[fd]) close(fd);
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* Whether root is bound by the modes of files. */
static void obey_modes(int obeys) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[2];
  const unsigned every = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
  CHECK(syscall(SYS_capget, &header, sets) == 0);
  sets[0].effective = obeys ? sets[0].effective & ~every : sets[0].effective | (sets[0].permitted & every);
  CHECK(syscall(SYS_capset, &header, sets) == 0);
}

/* A file of MPI_MODE_SEQUENTIAL with a view, or opened at its end; ROMIO never tells where it is. */
static void open_sequence(const char* path, int appends, MPI_File* file) {
  const int amode = MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | (appends ? MPI_MODE_APPEND : 0);
  CHECK(MPI_File_open(MPI_COMM_SELF, path, amode, MPI_INFO_NULL, file) == MPI_SUCCESS);
  if (!appends)
    CHECK(MPI_File_set_view(*file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
}

int main(int argc, char** argv) {
  signal(SIGUSR1, on_signal);
  const char* thing = argc > 2 ? argv[2] : "";
  if (!strcmp(thing, "untold")) setenv("OMPI_MCA_sharedfp", "individual", 1);
  const int in_sequence = !strncmp(thing, "sequence", strlen("sequence"));
  if (in_sequence || !strcmp(thing, "unsaved_by_romio")) setenv("OMPI_MCA_io", "romio341", 1);
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char own[64] = "/tmp/bsp-shim-blocked-XXXXXX", path[64];
  close(mkstemp(own));
  strcpy(path, own);
  const int together = !strcmp(thing, "half_started");
  if (together) MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);

  MPI_File file;
  MPI_Request request = MPI_REQUEST_NULL;
  const MPI_Comm comm = together ? MPI_COMM_WORLD : MPI_COMM_SELF;
  if (in_sequence)
    open_sequence(path, !strcmp(thing, "sequence_appended"), &file);
  else
    CHECK(MPI_File_open(comm, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS);

  if (!strcmp(thing, "split")) MPI_File_write_at_all_begin(file, 0, &rank, 1, MPI_INT);
  if (!strcmp(thing, "untold")) MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
  if (!strcmp(thing, "removed")) unlink(path);
  if (!strcmp(thing, "replaced")) {
    strcat(path, "-old");
    rename(own, path);
    fclose(fopen(own, "w"));
  }
  if (!strcmp(thing, "forbidden")) {
    chmod(path, 0);
    obey_modes(1);
  }
  const int unsaved = !strncmp(thing, "unsaved", strlen("unsaved"));
  if (unsaved) lose(path, file);
  if (!strcmp(thing, "locked")) {
    locking = open(path, O_RDWR);
    set_lock(F_WRLCK);
  }
  locks_unread = !strcmp(thing, "locks_unread");
  if (together && rank == 0) MPI_File_iwrite_at_all(file, 0, &rank, 1, MPI_INT, &request);

  for (int s = 0, left_over = -1; left_over != 0; ++s) {
    int release = enough, any = 0, in = -1;
    if (left_over == -1 && (!strcmp(thing, "removed") || !strcmp(thing, "replaced"))) {
      MPI_File_write_at(file, 4 * s, &s, 1, MPI_INT, MPI_STATUS_IGNORE);
      MPI_File_read_at(file, 4 * s, &in, 1, MPI_INT, MPI_STATUS_IGNORE);
      CHECK(in == s);
    }
    if (s == 2 && !strcmp(thing, "descriptors")) take_all_descriptors(); /* the ranks are connected by now */
    MPI_Allreduce(&release, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (left_over > 0) left_over = any > 1 ? 0 : left_over - 1;
    if (locking >= 0 && left_over == -1) expect_lock();
    if (any && left_over == -1) { /* remove what holds it back */
      left_over = n;
      if (!strcmp(thing, "split")) MPI_File_write_at_all_end(file, &rank, MPI_STATUS_IGNORE);
      if (!strcmp(thing, "forbidden")) {
        obey_modes(0);
        chmod(path, 0600);
      }
      if (unsaved) learn_of_loss(file);
      if (locking >= 0) set_lock(F_UNLCK);
      locks_unread = 0;
      if (!strcmp(thing, "descriptors")) return_all_descriptors();
      if (together && rank != 0) MPI_File_iwrite_at_all(file, 4 * rank, &rank, 1, MPI_INT, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (strcmp(thing, "split") != 0 && strcmp(thing, "forbidden") != 0 && !together && !unsaved)
        MPI_File_close(&file);
    }
    edge();
  }
  if (file != MPI_FILE_NULL) {
    int in = -1;
    if (!strcmp(thing, "split")) {
      MPI_File_read_at(file, 0, &in, 1, MPI_INT, MPI_STATUS_IGNORE);
      CHECK(in == rank);
    }
    MPI_File_close(&file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  unlink(own);
  unlink(path);
  MPI_Finalize();
  printf("ok blocked_files %s\n", thing);
  return 0;
}
