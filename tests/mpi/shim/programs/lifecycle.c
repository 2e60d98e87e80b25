/* lifecycle SUPERSTEPS END [CODE]: what a program may call before MPI_Init and after MPI_Finalize, and how it ends:
 * "finalize" and continue, "abort" with CODE, "fatal" error, "exit" without MPI_Finalize. */
#include "check.h"

int main(int argc, char** argv) {
  const char* end = argc > 2 ? argv[2] : "finalize";
  int initialized = -1, finalized = -1, version = 0, subversion = 0, length = 0, provided = -1, level = -1;
  char library[MPI_MAX_LIBRARY_VERSION_STRING], host[MPI_MAX_PROCESSOR_NAME];
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
  if (!strcmp(end, "fatal") && rank == size - 1) MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
  if (!strcmp(end, "abort") || !strcmp(end, "fatal")) { /* the others wait for it until they are killed */
    MPI_Recv(&flag, 1, MPI_INT, size - 1, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 5;
  }
  if (!strcmp(end, "exit")) {
    printf("ok lifecycle exit\n");
    exit(0);
  }
  MPI_Finalize();
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
