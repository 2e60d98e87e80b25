/* lifecycle SUPERSTEPS END [CODE]: what a program may call before MPI_Init and after MPI_Finalize, and how it ends:
 * "finalize" and continue, "session" that is open beyond MPI_Finalize, "abort" with CODE, "fatal" error, "exit" without
 * MPI_Finalize upon SIGUSR2. */
#include "check.h"

static int deleted = 0;
static int on_deletion(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

/* A session's objects are valid until it ends, whether or not MPI_Finalize has been called. */
static int outlive_finalize(int size) {
  MPI_Session sessions[2];
  MPI_Group group;
  MPI_Comm comm, alone;
  MPI_Datatype pair;
  MPI_File file;
  int rank, right, left, finalized = -1, key, sum = 0, one = 1;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_deletion, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  for (int i = 0; i < 2; ++i) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &sessions[i]);
  MPI_Group_from_session_pset(sessions[0], "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "lifecycle.c", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &rank);
  right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  char path[64];
  snprintf(path, sizeof path, "/tmp/bsp-shim-lifecycle-%d", (int)getpid());
  MPI_Comm_split(comm, rank, 0, &alone);
  MPI_File_open(alone, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_Finalize();
  MPI_Finalized(&finalized);
  if (!finalized || deleted != 1) return 8;
  MPI_Session_finalize(&sessions[1]);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  int out[2] = {rank, 5}, in[2] = {-1, -1};
  MPI_Sendrecv(out, 1, pair, right, 1, in, 1, pair, left, 1, comm, MPI_STATUS_IGNORE);
  if (sum != size || in[0] != left || in[1] != 5) return 9;
  if (MPI_File_write_at(file, 0, out, 1, pair, MPI_STATUS_IGNORE) != MPI_SUCCESS) return 10;
  MPI_File_close(&file);
  MPI_Type_free(&pair);
  MPI_Comm_free(&alone);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&sessions[0]);
  MPI_Finalized(&finalized);
  return finalized ? 0 : 11;
}

int main(int argc, char** argv) {
  const char* end = argc > 2 ? argv[2] : "finalize";
  int initialized = -1, finalized = -1, version = 0, subversion = 0, length = 0, provided = -1, level = -1;
  char library[MPI_MAX_LIBRARY_VERSION_STRING], host[MPI_MAX_PROCESSOR_NAME];
  sigset_t told;
  sigemptyset(&told);
  sigaddset(&told, SIGUSR2);
  sigprocmask(SIG_BLOCK, &told, NULL);
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  MPI_Get_version(&version, &subversion);
  MPI_Get_library_version(library, &length);
  MPI_Info info; /* may be created before */
  MPI_Info_create(&info);
  MPI_Info_set(info, "made", "early");
  if (initialized || finalized || version < 3 || length == 0) return 4;

  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  CHECK(provided >= MPI_THREAD_FUNNELED);
  MPI_Query_thread(&level);
  MPI_Initialized(&initialized);
  CHECK(level == provided && initialized);
  int rank, size, n = supersteps(argc, argv), flag, *tag_ub;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(host, &length);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &flag);
  CHECK(length > 0 && flag && *tag_ub >= 32767);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  CHECK(parent == MPI_COMM_NULL);
  MPI_Request never; /* never started, never freed: a bug, but it happens */
  MPI_Recv_init(&length, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &never);

  double start = MPI_Wtime();
  for (int s = 0; s < n; ++s) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    char value[16];
    MPI_Info_get(info, "made", sizeof value - 1, value, &flag);
    CHECK(flag && !strcmp(value, "early"));
    edge();
  }
  printf("said before the end\n");
  if (!strcmp(end, "abort") && rank == size - 1) MPI_Abort(MPI_COMM_WORLD, atoi(argv[3]));
  if (!strcmp(end, "failed") && rank == size - 1) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, atoi(argv[3]));
  }
  if (!strcmp(end, "fatal") && rank == size - 1) MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
  if (!strcmp(end, "abort") || !strcmp(end, "failed") ||
      !strcmp(end, "fatal")) { /* the others wait for it until they are killed */
    MPI_Recv(&flag, 1, MPI_INT, size - 1, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 5;
  }
  if (!strcmp(end, "exit")) {
    int number;
    fflush(stdout);
    sigwait(&told, &number);
    printf("ok lifecycle exit\n");
    exit(0);
  }
  if (!strcmp(end, "session")) {
    const int wrong = outlive_finalize(size);
    if (wrong != 0) return wrong;
  } else {
    MPI_Finalize();
  }
  MPI_Finalized(&finalized);
  MPI_Initialized(&initialized);
  if (!finalized || !initialized || MPI_Wtime() < start) return 6;
  MPI_Get_library_version(library, &length);
  /* This program writes its results after MPI. */
  double sum = 0;
  for (int i = 0; i < 300; ++i) {
    for (int j = 0; j < 1000; ++j) sum += 1.0 / (1 + i + j);
    usleep(1000);
  }
  if (!(sum > 0)) return 7;
  printf("ok lifecycle finalize %.3f\n", sum);
  return 0;
}
