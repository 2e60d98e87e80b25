/* Linked with MPI, but never calls it. */
#include "check.h"

int main(int argc, char** argv) {
  for (int s = 0; s < supersteps(argc, argv) / 10; ++s) usleep(1000);
  printf("ok without_mpi\n");
  return 0;
}
