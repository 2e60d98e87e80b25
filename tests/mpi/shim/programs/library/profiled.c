/* A program with its own profiling layer: it defines some MPI functions, which count and call PMPI, and in places
 * calls PMPI directly. */
#include "check.h"

static int inits = 0, steps = 0, sends = 0, barriers = 0, dups = 0;

int MPI_Init(int* argc, char*** argv) {
  ++inits;
  return PMPI_Init(argc, argv);
}
int MPI_Send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  ++sends;
  int bytes = 0;
  PMPI_Type_size(type, &bytes);
  return bytes > 0 ? PMPI_Send(buf, count, type, dest, tag, comm) : MPI_ERR_TYPE;
}
int MPI_Barrier(MPI_Comm comm) {
  ++barriers;
  return PMPI_Barrier(comm);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  ++dups;
  return PMPI_Comm_dup(comm, made);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm comm, split;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  PMPI_Comm_split(comm, rank % 2, rank, &split);
  MPI_Datatype pair;
  PMPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  for (int s = 0; going_on(s, n); ++s) {
    int out[2] = {rank, s}, in[2], sum = 0;
    steps = s + 1;
    MPI_Request request;
    MPI_Status status;
    PMPI_Irecv(in, 1, pair, MPI_ANY_SOURCE, 1, comm, &request);
    MPI_Send(out, 1, pair, (rank + 1) % size, 1, comm);
    PMPI_Wait(&request, &status);
    CHECK(in[0] == (rank + size - 1) % size && in[1] == s && status.MPI_SOURCE == in[0]);
    int one = 1;
    PMPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, split);
    CHECK(sum == (size + 1 - rank % 2) / 2);
    edge();
  }
  CHECK(inits == 1 && sends == steps && barriers == steps && dups == 1);
  MPI_Comm_free(&split);
  PMPI_Comm_free(&comm);
  PMPI_Finalize();
  printf("ok profiled\n");
  return 0;
}
