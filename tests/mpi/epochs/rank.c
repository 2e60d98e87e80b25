/* epochs_rank RUN_DIR EPOCHS [hold]: a rank that opens and closes one MPI session after the other, each from the epoch
 * descriptor that its sidecar has written, and communicates with its neighbours in each. For each epoch it prints one
 * line:
 *   epoch <n> sum <result of ten allreduces> open_us <us> close_us <us> fds <open descriptors> shared <n>
 * `shared`: mappings of /dev/shm while the epoch was open; none may be left when it is closed.
 * With `hold` it prints "holding <n>" before it closes epoch n and waits for the file RUN_DIR/go.<n>. It is a minimal
 * version of what the shim does. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <mpi.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static long long now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000ll + t.tv_nsec / 1000;
}

/* Puts the descriptor's PMIX_ variables into the environment; 0 if it isn't that of `epoch` yet. */
static int load_descriptor(const char* path, int epoch) {
  char line[8192];
  int right = 0;
  FILE* f = fopen(path, "r");
  if (!f) return 0;
  while (fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    char* equals = strchr(line, '=');
    if (!equals) continue;
    *equals = 0;
    if (!strcmp(line, "BSP_EPOCH")) right = atoi(equals + 1) == epoch;
    if (!strncmp(line, "PMIX_", 5)) setenv(line, equals + 1, 1);
  }
  fclose(f);
  return right;
}

/* Records the open descriptors, or closes those that are open now and were not recorded; returns how many stay. */
static int descriptors(char* marked, int clean) {
  int list[4096], n = 0, kept = 0;
  DIR* d = opendir("/proc/self/fd");
  for (struct dirent* e; (e = readdir(d));) {
    int fd = atoi(e->d_name);
    if (e->d_name[0] == '.' || fd == dirfd(d)) continue;
    if (!clean) marked[fd] = 1;
    if (clean && !marked[fd])
      list[n++] = fd;
    else
      ++kept;
  }
  closedir(d);
  for (int i = 0; i < n; ++i) close(list[i]);
  return kept;
}

/* Mappings of btl/sm's files; removes them and the files if `clean`. Open MPI 5.0 leaves both behind. */
static int segments(int clean) {
  char line[4096];
  int n = 0;
  FILE* f = fopen("/proc/self/maps", "r");
  while (f && fgets(line, sizeof line, f)) {
    char* path = strstr(line, "/dev/shm/");
    unsigned long begin, end;
    if (!path || sscanf(line, "%lx-%lx", &begin, &end) != 2) continue;
    ++n;
    path[strcspn(path, " \n")] = 0;
    if (clean && strncmp(path, "/dev/shm/sm_segment.", 20) == 0) {
      unlink(path);
      if (access(path, F_OK) == 0) return -1;
      munmap((void*)begin, end - begin);
      rewind(f); /* the list has changed */
    }
  }
  if (f) fclose(f);
  return n;
}

/* Open MPI treats unknown PMIx events as fatal, including the loss of its server. A rank needs no server until the
 * next epoch, so this handler, which precedes Open MPI's default one, swallows the event. */
static void on_lost_server(size_t id, pmix_status_t status, const pmix_proc_t* source, pmix_info_t info[], size_t n,
                           pmix_info_t results[], size_t m, pmix_event_notification_cbfunc_fn_t done, void* data) {
  (void)id, (void)status, (void)source, (void)info, (void)n, (void)results, (void)m;
  if (done) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  char path[4096], marked[4096];
  int epochs = atoi(argv[2]), bytes = 1 << 20;
  char *out = calloc(1, (size_t)bytes), *in = malloc((size_t)bytes);
  snprintf(path, sizeof path, "%s/epoch", argv[1]);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    while (!load_descriptor(path, epoch)) usleep(2000);
    memset(marked, 0, sizeof marked);
    descriptors(marked, 0);
    long long t0 = now_us();
    MPI_Session session;
    MPI_Group group;
    MPI_Comm world;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
    PMIx_Register_event_handler(&lost, 1, NULL, 0, on_lost_server, NULL, NULL);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "bsp", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &world);
    MPI_Group_free(&group);
    long long t1 = now_us();
    int rank, size;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    long total = 0;
    for (int k = 0; k < 10; ++k) {
      long mine = rank + 1 + epoch, sum;
      MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, world);
      total += sum;
    }
    out[0] = (char)rank;
    MPI_Sendrecv(out, bytes, MPI_CHAR, (rank + 1) % size, 0, in, bytes, MPI_CHAR, (rank + size - 1) % size, 0, world,
                 MPI_STATUS_IGNORE);
    if (in[0] != (char)((rank + size - 1) % size)) return 3;
    /* A second communicator needs its own context id. */
    MPI_Comm half;
    MPI_Comm_split(world, rank % 2, rank, &half);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
    if (argc > 3) {
      char go[4200];
      snprintf(go, sizeof go, "%s/go.%d", argv[1], epoch);
      printf("holding %d\n", epoch);
      fflush(stdout);
      while (access(go, F_OK) != 0) usleep(1000);
      MPI_Barrier(world); /* the connections between the ranks don't need the sidecars */
    }
    /* Open MPI 5.0 opens this framework twice and closes it once. */
    int (*framework_close)(void*);
    *(void**)&framework_close = dlsym(RTLD_DEFAULT, "mca_base_framework_close");
    void* framework = dlsym(RTLD_DEFAULT, "opal_if_base_framework");
    if (framework_close && framework) framework_close(framework);
    int shared = segments(0);
    MPI_Comm_free(&world);
    long long t2 = now_us();
    MPI_Session_finalize(&session);
    long long t3 = now_us();
    int fds = descriptors(marked, 1);
    segments(1);
    if (segments(0) != 0) return 4;
    printf("epoch %d sum %ld open_us %lld close_us %lld fds %d shared %d\n", epoch, total, t1 - t0, t3 - t2, fds,
           shared);
    fflush(stdout);
  }
  return 0;
}
