/* moved_windows SUPERSTEPS [FILE]: until rank 0 finds FILE, one-sided communication that continues while ranks move: puts between fences, atomic counters under a
 * lock that is never released, and a dynamic window. Each rank checks every value that it reads. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "told.h"

enum { kCells = 4096 };

static int rank, ranks;

static void expect(long is, long should, const char* what, long superstep) {
  if (is == should) return;
  printf("rank %d, superstep %ld: %s is %ld instead of %ld\n", rank, superstep, what, is, should);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void compute(void) {
  for (const clock_t until = clock() + CLOCKS_PER_SEC / 100; clock() < until;) continue;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long supersteps = argc > 1 ? atol(argv[1]) : 100;
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

  long *cells = NULL, *counters = NULL, *attached = calloc(kCells, sizeof *attached), mine[kCells];
  MPI_Win fenced, locked, dynamic;
  MPI_Win_allocate(kCells * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &fenced);
  MPI_Win_allocate(ranks * sizeof *counters, sizeof *counters, MPI_INFO_NULL, MPI_COMM_WORLD, &counters, &locked);
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
  MPI_Win_attach(dynamic, attached, kCells * sizeof *attached);
  MPI_Aint here, there;
  MPI_Get_address(attached, &here);
  MPI_Sendrecv(&here, 1, MPI_AINT, left, 0, &there, 1, MPI_AINT, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Win_lock_all(0, locked);
  MPI_Win_fence(0, fenced);

  for (long s = 0; s < supersteps && !told(argc > 2 ? argv[2] : NULL); ++s) {
    compute();
    for (int k = 0; k < kCells; ++k) mine[k] = s * 1000003 + rank * 97 + k;
    MPI_Put(mine, kCells, MPI_LONG, right, 0, kCells, MPI_LONG, fenced);
    MPI_Win_fence(0, fenced);
    for (int k = 0; k < kCells; ++k) expect(cells[k], s * 1000003 + left * 97 + k, "a cell", s);

    const long one = 1;
    long before = 0;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, right, rank, MPI_SUM, locked);
    MPI_Win_flush(right, locked);
    expect(before, s, "a counter", s);

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, dynamic);
    MPI_Put(mine, 1, MPI_LONG, right, there, 1, MPI_LONG, dynamic);
    MPI_Win_unlock(right, dynamic);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, dynamic);
    expect(attached[0], s * 1000003 + left * 97, "attached memory", s);
    MPI_Win_unlock(rank, dynamic);
    MPI_Barrier(MPI_COMM_WORLD);
  }

  MPI_Win_fence(MPI_MODE_NOSUCCEED, fenced);
  MPI_Win_unlock_all(locked);
  MPI_Win_detach(dynamic, attached);
  MPI_Win_free(&dynamic);
  MPI_Win_free(&locked);
  MPI_Win_free(&fenced);
  free(attached);
  if (rank == 0) printf("OK windows\n");
  MPI_Finalize();
  return 0;
}
