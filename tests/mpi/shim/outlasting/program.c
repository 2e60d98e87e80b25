#include <mpi.h>

void use_solver(void);

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  use_solver();
  return 0;
}
