/* What `bsp-operator check` must name. held_back [no-edges|ends|fails]: by default its ranks expose a window to each other
 * at every edge. */
#include <mpi.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void compute(void) {
  for (const clock_t until = clock() + CLOCKS_PER_SEC / 50; clock() < until;) continue;
}

static void with_a_window(void) {
  MPI_Win window;
  MPI_Group all;
  int* memory = NULL;
  MPI_Win_allocate(64, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_get_group(window, &all);
  MPI_Win_post(all, 0, window);
  for (;;) {
    compute();
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void without_edges(void) {
  int rank = 0, got = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (;;) {
    compute();
    MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 0, &got, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  int provided = 0;
  MPI_Init_thread(&argc, &argv, strcmp(how, "no-edges") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  if (strcmp(how, "no-edges") == 0) without_edges();
  if (strcmp(how, "fails") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
  if (strcmp(how, "ends") != 0) with_a_window();
  MPI_Finalize();
  return 0;
}
