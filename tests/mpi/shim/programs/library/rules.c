/* Rules of the standard that a layer between a program and MPI easily breaks, in every epoch. */
#include "check.h"

enum { kFlood = 400, kMany = 5000 };

static int rank, size, left, right;

/* A freed communicator stays until pending operations on it complete (MPI 4.1, 7.4.3). */
static void freed_with_receives_pending(int s) {
  MPI_Comm brief;
  MPI_Request requests[3];
  int got[3] = {-1, -1, -1}, from_right = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &brief);
  for (int i = 0; i < 3; ++i) MPI_Irecv(&got[i], 1, MPI_INT, left, i, brief, &requests[i]);
  if (rank % 2 != 0) { /* sends once the receiver, and the rank that sends to this one, has freed it or sent */
    MPI_Recv(&from_right, 1, MPI_INT, right, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 2; i >= 0; --i) MPI_Send(&s, 1, MPI_INT, right, i, brief);
    MPI_Comm_free(&brief);
  } else {
    for (int i = 2; i >= 0; --i) MPI_Send(&s, 1, MPI_INT, right, i, brief);
    MPI_Comm_free(&brief);
    MPI_Send(&from_right, 1, MPI_INT, left, 100, MPI_COMM_WORLD);
  }
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 3; ++i) CHECK(got[i] == s && requests[i] == MPI_REQUEST_NULL);
}

/* All send to one that isn't receiving yet; no message overtakes another. */
static void flood(int s) {
  if (rank != 0) {
    for (int i = 0; i < kFlood; ++i) {
      const int word[2] = {rank * kFlood + i, s};
      MPI_Send(word, 2, MPI_INT, 0, 5, MPI_COMM_WORLD);
    }
    return;
  }
  for (int r = size - 1; r > 0; --r) /* the others' messages wait meanwhile as unexpected messages */
    for (int i = 0; i < kFlood; ++i) {
      int word[2] = {-1, -1};
      MPI_Recv(word, 2, MPI_INT, r, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(word[0] == r * kFlood + i && word[1] == s);
    }
}

/* Single completions leave MPI_ERROR unchanged; MPI_MESSAGE_NO_PROC (MPI 4.1, 3.8.2 and 3.2.5). */
static void matched(int s) {
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Request request;
  int word = s, got = -1, flag = 0, count = -1;
  memset(&status, 0x5a, sizeof status);
  status.MPI_ERROR = MPI_ERR_DIMS;
  MPI_Isend(&word, 1, MPI_INT, right, 6, MPI_COMM_WORLD, &request);
  do {
    CHECK(message == MPI_MESSAGE_NULL);
    MPI_Improbe(left, 6, MPI_COMM_WORLD, &flag, &message, &status);
  } while (!flag);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(message != MPI_MESSAGE_NULL && status.MPI_SOURCE == left && status.MPI_TAG == 6 && count == 1);
  CHECK(status.MPI_ERROR == MPI_ERR_DIMS);
  MPI_Mrecv(&got, 1, MPI_INT, &message, &status);
  CHECK(got == s && message == MPI_MESSAGE_NULL && status.MPI_ERROR == MPI_ERR_DIMS);
  status.MPI_ERROR = MPI_ERR_TOPOLOGY;
  MPI_Wait(&request, &status);
  CHECK(status.MPI_ERROR == MPI_ERR_TOPOLOGY);
  MPI_Mprobe(MPI_PROC_NULL, 6, MPI_COMM_WORLD, &message, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
  CHECK(count == 0 && status.MPI_ERROR == MPI_ERR_TOPOLOGY);
  MPI_Imrecv(&got, 1, MPI_INT, &message, &request);
  CHECK(message == MPI_MESSAGE_NULL && request != MPI_REQUEST_NULL);
  MPI_Wait(&request, &status);
  CHECK(got == s && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_ERROR == MPI_ERR_TOPOLOGY);
}

static void twice_and_add(void* in, void* inout, int* length, MPI_Datatype* type) {
  CHECK(*type == MPI_INT);
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] = 2 * ((int*)in)[i] + ((int*)inout)[i];
}

static void reduced_locally(MPI_Op own) {
  static int in[kMany], sum[kMany], odd[kMany];
  for (int n = 0; n <= kMany; n = n == 0 ? 1 : n * 5) {
    for (int i = 0; i < n; ++i) in[i] = sum[i] = odd[i] = i;
    MPI_Reduce_local(in, sum, n, MPI_INT, MPI_SUM);
    MPI_Reduce_local(in, odd, n, MPI_INT, own);
    for (int i = 0; i < n; ++i) CHECK(in[i] == i && sum[i] == 2 * i && odd[i] == 3 * i);
  }
}

/* The root's part stays in place; ignored arguments are not read. */
static void scattered_in_place(int s) {
  int* all = malloc((size_t)size * sizeof *all);
  for (int root = 0; root < size; ++root) {
    int mine = -1;
    for (int r = 0; r < size; ++r) all[r] = 100 * root + r + s;
    if (rank == root)
      MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
    else
      MPI_Scatter(NULL, -1, MPI_DATATYPE_NULL, &mine, 1, MPI_INT, root, MPI_COMM_WORLD);
    CHECK(rank == root ? all[rank] == 100 * root + rank + s : mine == 100 * root + rank + s);
  }
  free(all);
}

/* A ring as a distributed graph of which each rank specifies its own edges. */
static void ring_as_graph(void) {
  MPI_Comm graph;
  int degree[1] = {2}, self[1] = {rank}, to[2] = {left, right}, in = 0, out = 0, weighted = 1, from_here[2], to_here[2];
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, self, degree, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &graph);
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  CHECK(in == 2 && out == 2 && !weighted);
  MPI_Dist_graph_neighbors(graph, 2, to_here, MPI_UNWEIGHTED, 2, from_here, MPI_UNWEIGHTED);
  CHECK(to_here[0] + to_here[1] == left + right && (to_here[0] == left || to_here[0] == right));
  CHECK(from_here[0] == left && from_here[1] == right);
  MPI_Comm_free(&graph);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size % 2 == 0);
  left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Op own;
  MPI_Op_create(twice_and_add, 0, &own);
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    freed_with_receives_pending(s);
    flood(s);
    matched(s);
    reduced_locally(own);
    scattered_in_place(s);
    ring_as_graph();
    edge();
  }
  MPI_Op_free(&own);
  MPI_Finalize();
  printf("ok rules\n");
  return 0;
}
