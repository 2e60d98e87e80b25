/* own_memory SUPERSTEPS common|own: a file of /dev/shm that all ranks map, as ranks of a host do that share memory without MPI, or one
 * for each. Prints "ok own_memory". */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "check.h"

int main(int argc, char** argv) {
  int rank = -1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int n = supersteps(argc, argv), is_own = argc > 2 && !strcmp(argv[2], "own");
  int first = (int)getpid();  // tells this run's files from those of others
  MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
  char name[64];
  snprintf(name, sizeof name, "/bsp-own-memory-%d-%d", first, is_own ? rank : 0);
  const int file = shm_open(name, O_RDWR | O_CREAT, 0600);
  CHECK(file >= 0 && ftruncate(file, 4096) == 0);
  volatile long* memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(memory != MAP_FAILED && close(file) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (is_own || rank == 0) CHECK(shm_unlink(name) == 0);
  for (int s = 0; going_on(s, n); ++s) {
    if (is_own || rank == 0) memory[0] = s;
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memory[0] == s);
    edge();
  }
  MPI_Finalize();
  printf("ok own_memory\n");
  return 0;
}
