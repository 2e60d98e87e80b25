/* Neighbourhood collectives on graphs: an irregular MPI_Graph, distributed graphs with and without weights, and a
 * rank without neighbours. Blocking, nonblocking, persistent. */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  /* A star: everyone with rank 0. */
  int index[64], edges[128], degree = 0;
  for (int r = 0; r < size; ++r) {
    if (r == 0)
      for (int other = 1; other < size; ++other) edges[degree++] = other;
    else
      edges[degree++] = 0;
    index[r] = degree;
  }
  MPI_Comm star, arcs, sparse;
  MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &star);

  /* Arcs to the next and the next but one, with weights; rank 0 specifies all of them. */
  int sources[64], degrees[64], targets[128], weights[128];
  for (int r = 0; r < size; ++r) {
    sources[r] = r;
    degrees[r] = 2;
    targets[2 * r] = (r + 1) % size;
    targets[2 * r + 1] = (r + 2) % size;
    weights[2 * r] = 10 + r;
    weights[2 * r + 1] = 20 + r;
  }
  MPI_Dist_graph_create(MPI_COMM_WORLD, rank == 0 ? size : 0, sources, degrees, targets, weights, MPI_INFO_NULL, 0,
                        &arcs);
  /* A chain without the last rank, which specifies weights but no edges. */
  const int last = size - 1, in = rank > 0 && rank < last, out = rank < last - 1;
  const int before = rank - 1, after = rank + 1, weight = 3;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, &before, in ? &weight : MPI_WEIGHTS_EMPTY, out, &after,
                                 out ? &weight : MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &sparse);
  MPI_Request every_step;
  int value = 0, heard[2];
  MPI_Neighbor_allgather_init(&value, 1, MPI_INT, heard, 1, MPI_INT, arcs, MPI_INFO_NULL, &every_step);

  for (int s = 0; going_on(s, n); ++s) {
    int mine = rank * 1000 + s, got[64];
    memset(got, -1, sizeof got);
    MPI_Neighbor_allgather(&mine, 1, MPI_INT, got, 1, MPI_INT, star);
    if (rank == 0)
      for (int r = 1; r < size; ++r) CHECK(got[r - 1] == r * 1000 + s);
    else
      CHECK(got[0] == s);

    int topology, count_in, count_out, weighted, from[8], from_weights[8], to[8], to_weights[8];
    MPI_Topo_test(arcs, &topology);
    MPI_Dist_graph_neighbors_count(arcs, &count_in, &count_out, &weighted);
    CHECK(topology == MPI_DIST_GRAPH && count_in == 2 && count_out == 2 && weighted);
    MPI_Dist_graph_neighbors(arcs, 2, from, from_weights, 2, to, to_weights);
    for (int i = 0; i < 2; ++i) {
      const int step = (rank - from[i] + size) % size;
      CHECK(step == 1 || step == 2);
      CHECK(size < 3 || from_weights[i] == 10 * step + from[i]);
      CHECK(to[i] == (rank + 1 + i) % size && to_weights[i] == 10 * (i + 1) + rank);
    }
    /* Different numbers of elements to each, and different types. */
    double values[3] = {rank + 0.5 * s, 1, 2}, came[8] = {0};
    int send_counts[2] = {1, 2}, send_at[2] = {0, 1}, recv_counts[2], recv_at[2];
    for (int i = 0, at = 0; i < 2; ++i) {
      recv_counts[i] = from_weights[i] >= 20 ? 2 : 1;
      recv_at[i] = at;
      at += recv_counts[i];
    }
    MPI_Neighbor_alltoallv(values, send_counts, send_at, MPI_DOUBLE, came, recv_counts, recv_at, MPI_DOUBLE, arcs);
    for (int i = 0; i < 2; ++i) CHECK(came[recv_at[i]] == (recv_counts[i] == 1 ? from[i] + 0.5 * s : 1));
    MPI_Datatype pair, types[2];
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    MPI_Datatype recv_types[2];
    MPI_Aint send_bytes[2] = {0, sizeof(double)}, recv_bytes[2];
    int ones[2] = {1, 1};
    types[0] = MPI_DOUBLE;
    types[1] = pair;
    for (int i = 0; i < 2; ++i) {
      recv_types[i] = recv_counts[i] == 1 ? MPI_DOUBLE : pair;
      recv_bytes[i] = recv_at[i] * (MPI_Aint)sizeof(double);
    }
    memset(came, 0, sizeof came);
    MPI_Request request;
    MPI_Ineighbor_alltoallw(values, ones, send_bytes, types, came, ones, recv_bytes, recv_types, arcs, &request);
    MPI_Type_free(&pair);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; ++i) CHECK(came[recv_at[i]] == (recv_counts[i] == 1 ? from[i] + 0.5 * s : 1));

    int chain = -1;
    MPI_Neighbor_alltoall(&mine, 1, MPI_INT, &chain, 1, MPI_INT, sparse);
    CHECK(chain == (in ? before * 1000 + s : -1));
    MPI_Dist_graph_neighbors_count(sparse, &count_in, &count_out, &weighted);
    CHECK(count_in == in && count_out == out);

    value = mine;
    MPI_Start(&every_step);
    MPI_Wait(&every_step, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; ++i) CHECK(heard[i] == from[i] * 1000 + s);
    edge();
  }
  MPI_Request_free(&every_step);
  MPI_Comm_free(&star);
  MPI_Comm_free(&arcs);
  MPI_Comm_free(&sparse);
  MPI_Finalize();
  printf("ok neighbours\n");
  return 0;
}
