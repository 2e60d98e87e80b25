/* Each predefined operation on numbers of 64 bits in a window, as all ranks accumulate at once: compared with a reduction. */
#include <stdint.h>

#include "check.h"

enum { kNumbers = 5 };

int main(int argc, char** argv) {
  const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
  int rank, size;
  int64_t* cells;
  MPI_Win window;
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win_allocate(kNumbers * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &window);
  MPI_Win_lock_all(0, window);
  for (int s = 0; going_on(s, n); ++s)
    for (size_t op = 0; op < sizeof ops / sizeof *ops; ++op)
      for (int count = 1; count <= kNumbers; count += kNumbers - 1) {
        const int target = (int)(s + op) % size;
        int64_t given[kNumbers], expected[kNumbers];
        for (int i = 0; i < kNumbers; ++i) given[i] = (s + 3) * 0x9e3779b9L >> (rank + i) & 0xff;
        memset(cells, 0, kNumbers * sizeof *cells);
        cells[0] = cells[1] = 0x55;
        memcpy(expected, cells, sizeof expected);
        MPI_Win_sync(window);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Accumulate(given, count, MPI_INT64_T, target, 0, count, MPI_INT64_T, ops[op], window);
        MPI_Win_flush_all(window);
        edge();
        MPI_Win_sync(window);
        for (int from = 0; from < size; ++from) {
          int64_t theirs[kNumbers];
          memcpy(theirs, given, sizeof theirs);
          MPI_Bcast(theirs, kNumbers, MPI_INT64_T, from, MPI_COMM_WORLD);
          MPI_Reduce_local(theirs, expected, count, MPI_INT64_T, ops[op]);
        }
        if (rank == target) CHECK(memcmp(cells, expected, sizeof expected) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
      }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Finalize();
  printf("ok accumulate\n");
  return 0;
}
