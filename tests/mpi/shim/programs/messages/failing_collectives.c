/* failing_collectives SUPERSTEPS HOW: collectives that fail on one rank and not on the others, which can't know. Their errors are returned,
 * or an error handler "goes on" or "leaves" the call by longjmp. What MPI refuses without a message is called again, rightly. */
#include <setjmp.h>

#include "check.h"

enum { kWords = 5 };

static int rank, size, errors = 0;
static jmp_buf back;

static void goes_on(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++errors;
}

static void leaves(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++errors;
  longjmp(back, 1);
}

/* Returns, or longjmp does. */
static void broadcast(MPI_Comm comm, int count, int expected_class) {
  static int words[kWords]; /* static: nothing of this frame may be asked for after a longjmp */
  static int returned, class;
  returned = MPI_SUCCESS;
  if (setjmp(back) == 0) returned = MPI_Bcast(words, count, MPI_INT, 0, comm);
  if (returned == MPI_SUCCESS) return;
  MPI_Error_class(returned, &class);
  CHECK(class == expected_class);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  const char* how = argc > 2 ? argv[2] : "returns";
  MPI_Comm copy;
  MPI_Errhandler handler = MPI_ERRORS_RETURN;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  const int returns = !strcmp(how, "returns");
  if (!returns) MPI_Comm_create_errhandler(!strcmp(how, "leaves") ? leaves : goes_on, &handler);
  MPI_Comm_set_errhandler(copy, handler);
  if (!returns) MPI_Errhandler_free(&handler);
  int s = 0, expected = 0;
  for (; going_on(s, n); ++s) {
    usleep(1000);
    /* Too long for rank 1, which alone knows. */
    broadcast(copy, rank == 1 ? 1 : kWords, MPI_ERR_TRUNCATE);
    if (rank == 1 && !returns) CHECK(errors == ++expected);
    MPI_Barrier(copy);
    /* Rank 1 gets the arguments wrong at first. */
    if (rank == 1) broadcast(copy, -1, MPI_ERR_COUNT);
    if (rank == 1 && !returns) CHECK(errors == ++expected);
    broadcast(copy, kWords, MPI_SUCCESS);
    CHECK(errors == expected);
    MPI_Barrier(copy);
  }
  MPI_Comm_free(&copy);
  MPI_Finalize();
  printf("ok failing collectives %d\n", s);
  return 0;
}
