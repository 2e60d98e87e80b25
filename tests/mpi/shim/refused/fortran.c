/* What gfortran makes of "call MPI_Init(ierror)": a call into Open MPI's Fortran library. */
#include <stdio.h>

void mpi_init_(int* error);
void mpi_finalize_(int* error);

int main(void) {
  int error = -1;
  mpi_init_(&error);
  mpi_finalize_(&error);
  printf("ran, error %d\n", error);
  return 0;
}
