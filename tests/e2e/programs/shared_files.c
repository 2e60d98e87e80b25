/* shared_files append|rewrite VOLUME FILE: until rank 0 finds FILE, each rank writes a line for each superstep to files of its own on
 * VOLUME: one that stays open for appending, one that stays open, and one that is opened for each line; all ranks write a record to an
 * MPI file. `rewrite`: the last rank also rewrites a file in place. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "told.h"

static int rank, ranks;
static const char* volume;

static const char* path_of(const char* name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s-%d", volume, name, rank);
  return path;
}

static int opened(const char* name, int flags) {
  const int file = open(path_of(name), O_WRONLY | O_CREAT | flags, 0644);
  if (file < 0) {
    perror(path_of(name));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return file;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rewrites = argc > 1 && strcmp(argv[1], "rewrite") == 0;
  volume = argc > 2 ? argv[2] : ".";
  const int appended = opened("appended", O_TRUNC | O_APPEND), plain = opened("plain", O_TRUNC);
  close(opened("closed", O_TRUNC));
  const int state = rewrites && rank == ranks - 1 ? opened("state", O_TRUNC) : -1;
  char path[256];
  snprintf(path, sizeof path, "%s/records", volume);
  MPI_File records;
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &records);
  MPI_File_set_size(records, 0);

  long s = 0;
  for (; !told(argc > 3 ? argv[3] : NULL); ++s) {
    for (const clock_t until = clock() + CLOCKS_PER_SEC / 50; clock() < until;) continue;
    char line[32];
    const int length = snprintf(line, sizeof line, "%ld\n", s);
    const int closed = opened("closed", O_APPEND);
    if (write(appended, line, length) != length || write(plain, line, length) != length ||
        write(closed, line, length) != length)
      MPI_Abort(MPI_COMM_WORLD, 2);
    close(closed);
    if (state >= 0 && pwrite(state, line, length, 0) != length) MPI_Abort(MPI_COMM_WORLD, 3);
    const long record = s * ranks + rank;
    MPI_File_write_at_all(records, record * (MPI_Offset)sizeof(long), &record, 1, MPI_LONG, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_File_close(&records);
  if (rank == 0) printf("OK shared %ld\n", s);
  MPI_Finalize();
  return 0;
}
