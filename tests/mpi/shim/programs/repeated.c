/* What a program makes over and over, and sometimes never frees, costs no more memory each time. */
#include "check.h"

static int rank, size;

static long resident_kib(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file != NULL) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Receives that are given up. */
static void give_up(int times) {
  static int word;
  for (int i = 0; i < times; ++i) {
    MPI_Request request;
    MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
}

/* A receive that is freed at once; its message comes later. */
static void receive_later(int s) {
  static int word = -1;
  int tag = s % 1000 + 8;
  MPI_Request request;
  CHECK(word == (s == 0 ? -1 : s - 1));
  MPI_Irecv(&word, 1, MPI_INT, (rank + 1) % size, tag, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  give_up(3);
  edge();
  MPI_Send(&s, 1, MPI_INT, (rank + size - 1) % size, tag, MPI_COMM_WORLD);
  for (int i = 0; i < 1000000 && *(volatile int*)&word != s; ++i) give_up(1); /* makes progress */
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int s = 0; going_on(s, n); ++s) {
    const int times = s == 1 ? 100000 : 3; /* not in the first superstep: MPI itself allocates there */
    const long before = resident_kib();
    give_up(times);
    CHECK(s == 0 || resident_kib() < before + 8 * 1024);
    receive_later(s);
  }
  MPI_Finalize();
  printf("ok repeated\n");
  return 0;
}
