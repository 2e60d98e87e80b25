/* blocked SUPERSTEPS THING: holds something that can't be carried over an epoch until some rank gets SIGUSR1, and uses
 * it all the time. Then it releases it and runs SUPERSTEPS supersteps more, or until another SIGUSR1. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The second needs the first. */
/* clang-format off */
#include <mpi.h>
#include <mpi-ext.h>
/* clang-format on */

#include "check.h"

enum { kLargeMessages = 9, kLarge = 8 << 20 };

static volatile sig_atomic_t enough = 0;
static void on_signal(int number) { (void)number, ++enough; }

static int unlisted;             /* the system has no memory for a list of descriptors */
DIR* opendir(const char* path) { /* replaces the C library's, for the shim too */
  static DIR* (*next)(const char*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "opendir");
  if (!unlisted || strcmp(path, "/proc/self/fd") != 0) return next(path);
  errno = ENOMEM;
  return NULL;
}

/* A thread that waits inside MPI for the message that ends it, in a call that it can't leave. */
static void* serve(void* comm) {
  int word = -1;
  MPI_Sendrecv_replace(&word, 1, MPI_INT, MPI_PROC_NULL, 6, MPI_ANY_SOURCE, 6, *(MPI_Comm*)comm, MPI_STATUS_IGNORE);
  return NULL;
}

/* A working directory that its owner may not enter (or read) any more, since root is bound by modes, too. */
static void enter_sealed(char* path, mode_t mode) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[2];
  CHECK(syscall(SYS_capget, &header, sets) == 0);
  sets[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
  CHECK(mkdtemp(path) != NULL && chdir(path) == 0 && chmod(path, mode) == 0);
  CHECK(syscall(SYS_capset, &header, sets) == 0);
}

/* A working directory whose name is longer than PATH_MAX. */
static void enter_deep(char* top) {
  char name[200];
  memset(name, 'd', sizeof name - 1);
  name[sizeof name - 1] = 0;
  CHECK(mkdtemp(top) != NULL && chdir(top) == 0);
  for (int i = 0; i < 25; ++i) CHECK(mkdir(name, 0700) == 0 && chdir(name) == 0);
}

static void confine_itself(void) {
  struct landlock_ruleset_attr denied = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK};
  const int ruleset = (int)syscall(SYS_landlock_create_ruleset, &denied, sizeof denied, 0);
  CHECK(ruleset >= 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0 && close(ruleset) == 0);
}

static int query(void* state, MPI_Status* status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_INT, 0);
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}
static int free_state(void* state) {
  (void)state;
  return MPI_SUCCESS;
}
static int cancel(void* state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  signal(SIGUSR1, on_signal);
  const char* thing = argc > 2 ? argv[2] : "";
  int provided = -1;
  if (!strcmp(thing, "thread"))
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else
    MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;

  int memory = -1, out = -1, in = -1, fd = -1;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Request persistent = MPI_REQUEST_NULL, pending = MPI_REQUEST_NULL;
  MPI_Comm served = MPI_COMM_NULL;
  pthread_t server;
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Message message = MPI_MESSAGE_NULL;
  char *large = NULL, *large_in = NULL;
  MPI_Request of_large[kLargeMessages];

  MPI_Group group = MPI_GROUP_NULL, neighbour = MPI_GROUP_NULL;
  if (!strcmp(thing, "exposed") || !strcmp(thing, "accessing")) {
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_get_group(window, &group);
  }
  if (!strcmp(thing, "exposed")) {
    MPI_Group_incl(group, 1, &left, &neighbour);
    MPI_Win_post(neighbour, 0, window);
  }
  if (!strcmp(thing, "accessing")) {
    MPI_Group_incl(group, 1, &right, &neighbour);
    MPI_Win_post(group, 0, window);
    MPI_Win_start(group, 0, window);
  }
  int ones[2] = {1, 1}, places[2] = {0, sizeof(int)}, to_all[2], from_all[2];
  MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  if (!strcmp(thing, "alltoallw"))
    MPI_Alltoallw_init(to_all, ones, places, types, from_all, ones, places, types, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &persistent);
  if (!strcmp(thing, "orphaned")) { /* on a communicator that has been freed */
    MPI_Comm_dup(MPI_COMM_WORLD, &served);
    MPI_Send_init(&out, 1, MPI_INT, right, 1, served, &pending);
    MPI_Comm_free(&served);
  }
  if (!strcmp(thing, "generalised")) MPI_Grequest_start(query, free_state, cancel, NULL, &pending);
  if (!strcmp(thing, "thread")) {
    MPI_Comm_dup(MPI_COMM_WORLD, &served);
    pthread_create(&server, NULL, serve, &served);
  }
  if (!strcmp(thing, "session")) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  if (!strcmp(thing, "probed")) {
    MPI_Comm_dup(MPI_COMM_WORLD, &served);
    MPI_Send(&rank, 1, MPI_INT, right, 3, served);
    MPI_Mprobe(left, 3, served, &message, MPI_STATUS_IGNORE);
    MPI_Comm_free(&served);
  }
  if (!strcmp(thing, "unknown")) { /* the receiver hasn't made its part */
    MPI_Psend_init(&rank, 1, 1, MPI_INT, right, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &pending);
    MPI_Start(&pending);
    MPI_Pready(0, pending);
  }
  if (!strcmp(thing, "large")) {
    large = calloc(kLargeMessages, kLarge), large_in = calloc(1, kLarge);
    CHECK(large != NULL && large_in != NULL);
    for (int i = 0; i < kLargeMessages; ++i) {
      memset(&large[(size_t)i * kLarge], i + 2 * rank, kLarge);
      MPI_Isend(&large[(size_t)i * kLarge], kLarge, MPI_CHAR, right, 4, MPI_COMM_WORLD, &of_large[i]);
    }
  }
  MPI_Comm copies[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
  MPI_Request of_some = MPI_REQUEST_NULL;
  if (!strcmp(thing, "half_begun")) {
    MPI_Comm_dup(MPI_COMM_WORLD, &copies[0]);
    if (rank == 0) MPI_Ibcast(&rank, 1, MPI_INT, 0, copies[0], &of_some);
  }
  if (!strcmp(thing, "request_half_freed")) {
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &of_some);
    if (rank == 0) MPI_Request_free(&of_some);
  }
  if (!strcmp(thing,
              "half_freed")) { /* by different ranks, each of which is done with one of two equal communicators */
    MPI_Comm_dup(MPI_COMM_WORLD, &copies[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &copies[1]);
    MPI_Comm_free(&copies[rank % 2]);
  }
  if (!strcmp(thing, "revoked")) {
    MPI_Comm_dup(MPI_COMM_WORLD, &copies[0]);
    MPIX_Comm_revoke(copies[0]);
  }
  if (!strcmp(thing, "tools")) MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  if (!strcmp(thing, "socket")) fd = socket(AF_INET, SOCK_STREAM, 0);
  long key = -1;
  if (!strcmp(thing, "key"))
    CHECK((key = syscall(SYS_add_key, "user", "blocked", "x", 1, KEY_SPEC_PROCESS_KEYRING)) > 0);
  unlisted = !strcmp(thing, "unlisted");
  char sealed[] = "/tmp/blocked-XXXXXX";
  char deep[] = "/tmp/deep-XXXXXX", remove_deep[64];
  if (!strcmp(thing, "deep")) enter_deep(deep);
  if (!strcmp(thing, "landlock")) confine_itself();
  const int is_sealed = !strcmp(thing, "unenterable") || !strcmp(thing, "unlistable");
  if (is_sealed) enter_sealed(sealed, !strcmp(thing, "unlistable") ? 0311 : 0600);

  MPI_Comm queue;
  MPI_Comm_dup(MPI_COMM_WORLD, &queue);
  for (int s = 0, left_over = -1; left_over != 0; ++s) {
    if (!strcmp(thing, "unknown")) { /* other messages stay in order, of which three cross every edge */
      MPI_Send(&s, 1, MPI_INT, right, s % 2, queue);
      if (s >= 3) MPI_Recv(&in, 1, MPI_INT, left, MPI_ANY_TAG, queue, MPI_STATUS_IGNORE);
      CHECK(s < 3 || in == s - 3);
    }
    if (persistent != MPI_REQUEST_NULL) {
      to_all[0] = to_all[1] = rank + s;
      MPI_Start(&persistent);
      MPI_Wait(&persistent, MPI_STATUS_IGNORE);
      CHECK(from_all[0] == s && from_all[1] == 1 + s && persistent != MPI_REQUEST_NULL);
    }
    int release = enough, any = 0;
    MPI_Allreduce(&release, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (left_over > 0) left_over = any > 1 ? 0 : left_over - 1;
    if (any && left_over == -1) { /* remove it */
      left_over = n;
      if (!strcmp(thing, "exposed")) {
        MPI_Group_free(&neighbour);
        MPI_Group_incl(group, 1, &right, &neighbour);
        MPI_Win_start(neighbour, 0, window);
      }
      if (group != MPI_GROUP_NULL) {
        MPI_Put(&rank, 1, MPI_INT, right, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
        MPI_Win_wait(window);
        CHECK(memory == left);
        MPI_Group_free(&neighbour);
        MPI_Group_free(&group);
      }
      if (window != MPI_WIN_NULL) MPI_Win_free(&window);
      if (persistent != MPI_REQUEST_NULL) MPI_Request_free(&persistent);
      if (served != MPI_COMM_NULL) {
        MPI_Send(&rank, 1, MPI_INT, right, 6, served);
        pthread_join(server, NULL);
      }
      if (!strcmp(thing, "orphaned")) {
        MPI_Request_free(&pending);
      } else if (!strcmp(thing, "generalised")) {
        MPI_Grequest_complete(pending);
        MPI_Wait(&pending, MPI_STATUS_IGNORE);
      } else if (!strcmp(thing, "unknown")) {
        MPI_Request from_left;
        MPI_Precv_init(&memory, 1, 1, MPI_INT, left, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &from_left);
        MPI_Start(&from_left);
        MPI_Wait(&from_left, MPI_STATUS_IGNORE);
        MPI_Wait(&pending, MPI_STATUS_IGNORE);
        CHECK(memory == left);
        MPI_Request_free(&from_left);
        MPI_Request_free(&pending);
      }
      if (session != MPI_SESSION_NULL) MPI_Session_finalize(&session);
      if (message != MPI_MESSAGE_NULL) {
        MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        CHECK(in == left);
      }
      if (large != NULL) {
        for (int i = 0; i < kLargeMessages; ++i) {
          MPI_Recv(large_in, kLarge, MPI_CHAR, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          CHECK(large_in[0] == i + 2 * left && large_in[kLarge - 1] == i + 2 * left);
        }
        MPI_Waitall(kLargeMessages, of_large, MPI_STATUSES_IGNORE);
        free(large), free(large_in);
      }
      if (fd >= 0) close(fd);
      if (key > 0) CHECK(syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_PROCESS_KEYRING) == 0);
      if (!strcmp(thing, "deep")) {
        snprintf(remove_deep, sizeof remove_deep, "rm -r %s", deep);
        CHECK(chdir("/") == 0 && system(remove_deep) == 0);
      }
      unlisted = 0;
      if (is_sealed) CHECK(chmod(sealed, 0700) == 0 && chdir("/") == 0 && rmdir(sealed) == 0);
      if (!strcmp(thing, "tools")) MPI_T_finalize();
      if (!strcmp(thing, "half_begun")) {
        if (rank != 0) MPI_Ibcast(&in, 1, MPI_INT, 0, copies[0], &of_some);
        MPI_Wait(&of_some, MPI_STATUS_IGNORE);
        CHECK(rank == 0 || in == 0);
      }
      if (of_some != MPI_REQUEST_NULL) MPI_Request_free(&of_some);
      for (int i = 0; i < 2; ++i)
        if (copies[i] != MPI_COMM_NULL) MPI_Comm_free(&copies[i]);
    }
    edge();
  }
  MPI_Finalize();
  printf("ok blocked %s\n", thing);
  return 0;
}
