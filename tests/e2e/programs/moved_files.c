/* moved_files SUPERSTEPS VOLUME [FILE]: until rank 0 finds FILE, MPI files that stay open while ranks move: two of all ranks on a volume, one of them with a view and
 * one with a shared pointer, and one of each rank in its container. Each rank checks every value that it reads. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "told.h"

enum { kCells = 1024, kBlocks = 50 };

static int rank, ranks;

static void expect(long is, long should, const char* what, long superstep) {
  if (is == should) return;
  printf("rank %d, superstep %ld: %s is %ld instead of %ld\n", rank, superstep, what, is, should);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void compute(void) {
  for (const clock_t until = clock() + CLOCKS_PER_SEC / 100; clock() < until;) continue;
}

static long value(long s, int of_rank, int k) { return s * 1000003 + of_rank * 97 + k; }

static MPI_File open_file(MPI_Comm comm, const char* directory, const char* name, int amode) {
  char path[256];
  MPI_File file;
  snprintf(path, sizeof path, "%s/%s", directory, name);
  expect(MPI_File_open(comm, path, amode, MPI_INFO_NULL, &file), MPI_SUCCESS, path, -1);
  return file;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long supersteps = argc > 1 ? atol(argv[1]) : 100;
  const char* volume = argc > 2 ? argv[2] : ".";
  const int right = (rank + 1) % ranks, create = MPI_MODE_CREATE | MPI_MODE_RDWR;

  MPI_File field = open_file(MPI_COMM_WORLD, volume, "field", create);
  MPI_File whole = open_file(MPI_COMM_WORLD, volume, "field", MPI_MODE_RDONLY);
  MPI_File events = open_file(MPI_COMM_WORLD, volume, "events", create | MPI_MODE_EXCL);
  MPI_File own = open_file(MPI_COMM_SELF, "/tmp", "own", create);
  MPI_Datatype stripes;
  MPI_Type_create_resized(MPI_LONG, 0, ranks * (MPI_Aint)sizeof(long), &stripes);
  MPI_Type_commit(&stripes);
  MPI_File_set_view(field, rank * (MPI_Offset)sizeof(long), MPI_LONG, stripes, "native", MPI_INFO_NULL);
  MPI_Type_free(&stripes);
  MPI_File_set_view(events, 0, MPI_LONG, MPI_LONG, "native", MPI_INFO_NULL);

  long mine[kCells];
  for (long s = 0; s < supersteps && !told(argc > 3 ? argv[3] : NULL); ++s) {
    compute();
    for (int k = 0; k < kCells; ++k) mine[k] = value(s, rank, k);
    MPI_Offset at = -1;
    MPI_File_get_position(field, &at);
    expect(at, s % kBlocks * kCells, "the pointer", s);
    MPI_File_write_all(field, mine, kCells, MPI_LONG, MPI_STATUS_IGNORE);
    if (s % kBlocks == kBlocks - 1) MPI_File_seek(field, 0, MPI_SEEK_SET);

    const long event = value(s, rank, 0);
    MPI_File_write_ordered(events, &event, 1, MPI_LONG, MPI_STATUS_IGNORE);
    MPI_File_write(own, &event, 1, MPI_LONG, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);

    long there[2] = {-1, -1}, before = -1;
    MPI_File_read_at(whole, (s % kBlocks * kCells * ranks + right) * (MPI_Offset)sizeof(long), &there[0], 1, MPI_LONG,
                     MPI_STATUS_IGNORE);
    expect(there[0], value(s, right, 0), "a cell", s);
    MPI_File_read_at(events, s * ranks + right, &there[1], 1, MPI_LONG, MPI_STATUS_IGNORE);
    expect(there[1], value(s, right, 0), "an event", s);
    MPI_File_read_at(own, s / 2 * (MPI_Offset)sizeof(long), &before, 1, MPI_LONG, MPI_STATUS_IGNORE);
    expect(before, value(s / 2, rank, 0), "a value of this rank's own", s);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_File_close(&field);
  MPI_File_close(&whole);
  MPI_File_close(&events);
  MPI_File_close(&own);
  if (rank == 0) printf("OK files\n");
  MPI_Finalize();
  return 0;
}
