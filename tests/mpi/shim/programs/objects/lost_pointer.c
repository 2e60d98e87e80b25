/* lost_pointer SUPERSTEPS FILE HOW: from the next epoch on the file's directory takes no locks, so that Open MPI chooses
 * sharedfp/individual, which can't hold the shared pointer of a file that is open. HOW: the pointer was "used" before, is used
 * "later", after the last superstep, or "never", or has begun anew with a "view". */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"
#include "failing_open.h"

static int lockless;
static int error_of_open(const char* path) { /* of MPI's test whether there are locks */
  return lockless && strstr(path, ".locktest.") != NULL ? ENOLCK : 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  CHECK(argc > 3);
  const char* how = argv[3];
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  if (!strcmp(how, "used")) MPI_File_write_ordered(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
  lockless = 1;
  for (int s = 0; going_on(s, n); ++s) edge();
  if (!strcmp(how, "view")) MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  if (strcmp(how, "never") != 0) MPI_File_write_ordered(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
  printf("ok lost_pointer %s\n", how);
  return 0;
}
