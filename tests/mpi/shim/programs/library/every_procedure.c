/* Calls each procedure of mpi.h once in the first epoch and once in the last: nothing may depend on what only MPI_Init
 * sets up. Regular calls are generated (every_procedure.py), the others are in every/. The program fails if a
 * procedure was not called. */
#include "every/communicators.h"
#include "every/data.h"
#include "every/files.h"
#include "every/fixtures.h"
#include "every/windows.h"

static void on_crash(int signal_number) {
  static const char kIn[] = "crashed in ";
  const char* name = latest >= 0 ? kNames[latest] : "?";
  if (write(2, kIn, sizeof kIn - 1) < 0 || write(2, name, strlen(name)) < 0) _exit(5);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

static int no_conversion(void* user, MPI_Datatype type, int n, void* file, MPI_Offset at, void* state) {
  return (void)user, (void)type, (void)n, (void)file, (void)at, (void)state, MPI_SUCCESS;
}
static int no_extent(MPI_Datatype type, MPI_Aint* extent, void* state) {
  return (void)type, (void)state, *extent = 1, MPI_SUCCESS;
}

static void regular(void) {
  int dims[1] = {size}, periods[1] = {1};
  static char buffer[1024 + MPI_BSEND_OVERHEAD];
  void* detached;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
  MPI_Buffer_attach(buffer, sizeof buffer);
  BSP_GENERATED_CALLS
  MPI_Buffer_detach(&detached, &number);
  MPI_Comm_free(&grid);
}

static void every_procedure(void) {
  regular();
  groups();
  made_of_groups();
  communicators();
  topologies();
  infos();
  sessions();
  datatypes();
  operations();
  requests();
  messages();
  partitioned();
  itself();
  windows();
  files();
}

/* Calls that can't be undone. */
static void for_good(void) {
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  MPI_Register_datarep("every", no_conversion, no_conversion, no_extent, NULL);
}

int main(int argc, char** argv) {
  signal(SIGSEGV, on_crash);
  if (getenv("BSP_TRACE_CALLS") != NULL) trace = kNames;
  setenv("OMPI_MCA_fcoll", "individual",
         0); /* fcoll/vulcan of Open MPI 5.0.7 reads past such small data, even without the shim */
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &number);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size >= 2 && size <= kMost);
  for (int i = 0; i < kMost; ++i) {
    ones[i] = 1;
    places[i] = i * (int)sizeof(int); /* elements or bytes: both fit */
    byte_places[i] = places[i];
    ints[i] = MPI_INT;
  }
  every_procedure();
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    usleep(1000);
    MPI_Exscan(given, taken, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* the edge: not while a window or a file is open */
  }
  every_procedure();
  for_good();
  for (int i = 0; i < kProcedures && !with_romio(); ++i) {
    if (!called[i] && kNotCalled[i] == NULL) fprintf(stderr, "%s was not called\n", kNames[i]);
    CHECK(called[i] || kNotCalled[i] != NULL);
  }
  MPI_Finalize();
  printf("ok every_procedure\n");
  return 0;
}
