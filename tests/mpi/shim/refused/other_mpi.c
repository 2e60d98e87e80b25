/* A program linked with another MPI. */
#include <stdio.h>

int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Finalize();
  printf("ran\n");
  return 0;
}
