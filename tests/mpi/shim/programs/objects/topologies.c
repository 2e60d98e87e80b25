/* The neighbours in every kind of topology, queried in every superstep: Cartesian, graph, distributed graph from all
 * ranks' edges on one rank, from shuffled ones, and from adjacent ones, also of the ranks of another topology; with and
 * without permission to reorder; with weights, MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY. And communicators of some of their ranks, which have none. */
#include "check.h"

enum { kMost = 16, kKinds = 5 };

static int rank, size;
static int *const unweighted = MPI_UNWEIGHTED, *const no_weights = MPI_WEIGHTS_EMPTY;

/* The directed graph that is built in several ways: r -> r+1, and r -> r*2 for odd r. Its weights. */
static int out_of(int r, int* to, int* weight) {
  int n = 0;
  to[n] = (r + 1) % size, weight[n++] = 100 + r;
  if (r % 2 == 1 && r * 2 % size != (r + 1) % size) to[n] = r * 2 % size, weight[n++] = 200 + r;
  return n;
}

static int into(int r, int* from, int* weight) {
  int n = 0, to[2], w[2];
  for (int other = 0; other < size; ++other)
    for (int i = out_of(other, to, w) - 1; i >= 0; --i)
      if (to[i] == r) from[n] = other, weight[n++] = w[i];
  return n;
}

/* Both lists contain the same pairs, in any order. */
static int same(int n, const int* a, const int* a_weight, const int* b, const int* b_weight) {
  int used[kMost] = {0}, found = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      if (!used[j] && a[i] == b[j] && (b_weight == NULL || a_weight[i] == b_weight[j])) {
        used[j] = 1;
        ++found;
        break;
      }
  return found == n;
}

static void check_graph(MPI_Comm comm, int with_weights) {
  int in, out, weighted, me, kind;
  int from[kMost], to[kMost], from_weights[kMost], to_weights[kMost];
  int want_from[kMost], want_to[kMost], want_from_weights[kMost], want_to_weights[kMost];
  MPI_Comm_rank(comm, &me);
  CHECK(me == rank);
  MPI_Topo_test(comm, &kind);
  CHECK(kind == MPI_DIST_GRAPH);
  MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  CHECK(in == into(me, want_from, want_from_weights) && out == out_of(me, want_to, want_to_weights));
  CHECK(weighted == with_weights);
  if (with_weights)
    MPI_Dist_graph_neighbors(comm, in, from, from_weights, out, to, to_weights);
  else
    MPI_Dist_graph_neighbors(comm, in, from, unweighted, out, to, unweighted);
  CHECK(same(in, from, from_weights, want_from, with_weights ? want_from_weights : NULL));
  CHECK(same(out, to, to_weights, want_to, with_weights ? want_to_weights : NULL));
  int heard[kMost];
  MPI_Neighbor_allgather(&me, 1, MPI_INT, heard, 1, MPI_INT, comm);
  for (int i = 0; i < in; ++i) CHECK(heard[i] == from[i]);
}

/* Rank 0 specifies every edge; or every rank specifies those of the next rank, one source twice. */
static MPI_Comm distributed(int all_at_one, int with_weights, int reorder) {
  int sources[kMost], degrees[kMost], targets[2 * kMost], weights[2 * kMost], n = 0, edges = 0;
  for (int r = 0; r < size; ++r) {
    if (all_at_one ? rank != 0 : r != (rank + 1) % size) continue;
    int to[2], weight[2];
    const int many = out_of(r, to, weight);
    for (int i = 0; i < many; ++i) {
      sources[n] = r;
      degrees[n++] = 1;
      targets[edges] = to[i];
      weights[edges++] = weight[i];
    }
  }
  MPI_Comm made;
  MPI_Dist_graph_create(MPI_COMM_WORLD, n, sources, degrees, targets,
                        !with_weights ? unweighted
                        : n == 0      ? no_weights
                                      : weights,
                        MPI_INFO_NULL, reorder, &made);
  return made;
}

static MPI_Comm adjacent(MPI_Comm old, int with_weights, int reorder) {
  int from[kMost], from_weights[kMost], to[kMost], to_weights[kMost];
  const int in = into(rank, from, from_weights), out = out_of(rank, to, to_weights);
  MPI_Comm made;
  MPI_Dist_graph_create_adjacent(old, in, from, with_weights ? from_weights : unweighted, out, to,
                                 with_weights ? to_weights : unweighted, MPI_INFO_NULL, reorder, &made);
  return made;
}

/* Only rank 0 and the last one have an edge. */
static MPI_Comm lonely(int reorder) {
  const int out = rank == 0, in = rank == size - 1, first = 0, last = size - 1, weight = 7;
  MPI_Comm made;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, &first, in ? &weight : no_weights, out, &last,
                                 out ? &weight : no_weights, MPI_INFO_NULL, reorder, &made);
  return made;
}

static void check_lonely(MPI_Comm comm) {
  int in, out, weighted, other = -1, weight = -1, none;
  MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  CHECK(in == (rank == size - 1) && out == (rank == 0) && weighted);
  MPI_Dist_graph_neighbors(comm, in, in ? &other : &none, in ? &weight : &none, out, out ? &other : &none,
                           out ? &weight : &none);
  if (in || out) CHECK(other == (in ? 0 : size - 1) && weight == 7);
}

static MPI_Comm grid(int reorder) {
  int dims[2] = {0, 0}, periods[2] = {1, 0};
  MPI_Dims_create(size, 2, dims);
  MPI_Comm made;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, reorder, &made);
  return made;
}

static void check_grid(MPI_Comm comm) {
  int dims[2], periods[2], coords[2], me, before, after, there, at[2];
  MPI_Comm_rank(comm, &me);
  MPI_Cart_get(comm, 2, dims, periods, coords);
  CHECK(me == rank && dims[0] * dims[1] == size && periods[0] && !periods[1]);
  CHECK(coords[0] == me / dims[1] && coords[1] == me % dims[1]);
  MPI_Cart_shift(comm, 0, 1, &before, &after);
  CHECK(after == (coords[0] + 1) % dims[0] * dims[1] + coords[1]);
  CHECK(before == (coords[0] + dims[0] - 1) % dims[0] * dims[1] + coords[1]);
  MPI_Cart_shift(comm, 1, 1, &before, &after);
  CHECK(after == (coords[1] + 1 < dims[1] ? me + 1 : MPI_PROC_NULL));
  CHECK(before == (coords[1] > 0 ? me - 1 : MPI_PROC_NULL));
  at[0] = coords[0] + dims[0], at[1] = coords[1];
  MPI_Cart_rank(comm, at, &there);
  CHECK(there == me);
}

/* A path, each node with both its ends; the last node has itself too. */
static MPI_Comm path(int reorder) {
  int index[kMost], edges[2 * kMost], n = 0;
  for (int r = 0; r < size; ++r) {
    if (r > 0) edges[n++] = r - 1;
    if (r + 1 < size) edges[n++] = r + 1;
    if (r + 1 == size) edges[n++] = r;
    index[r] = n;
  }
  MPI_Comm made;
  MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, reorder, &made);
  return made;
}

static void check_path(MPI_Comm comm) {
  int me, n, neighbours[3], i = 0;
  MPI_Comm_rank(comm, &me);
  CHECK(me == rank);
  MPI_Graph_neighbors_count(comm, me, &n);
  CHECK(n == (me > 0) + 1);
  MPI_Graph_neighbors(comm, me, n, neighbours);
  if (me > 0) CHECK(neighbours[i++] == me - 1);
  CHECK(neighbours[i] == (me + 1 < size ? me + 1 : me));
}

/* All but the first rank. */
static MPI_Comm others(MPI_Comm of) {
  const int first = 0;
  MPI_Group all, group;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_group(of, &all);
  MPI_Group_excl(all, 1, &first, &group);
  if (rank != first) MPI_Comm_create_group(of, group, 9, &made);
  MPI_Group_free(&group);
  MPI_Group_free(&all);
  return made;
}

static void check_others(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return;
  int me, kind, sum = 0;
  MPI_Comm_rank(comm, &me);
  MPI_Topo_test(comm, &kind);
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(me == rank - 1 && kind == MPI_UNDEFINED && sum == (size - 1) * (size - 2) / 2);
}

/* One graph after another of the same communicator, all edges at rank 0, most of them one other rank's: it still receives
 * them when the others go on. The nonblocking collectives before them shift whatever MPI counts on the communicator. */
static void check_many(int collectives) {
  enum { kEdges = 40000 };
  static int sources[kEdges], degrees[kEdges], targets[kEdges];
  MPI_Comm from;
  MPI_Comm_dup(MPI_COMM_WORLD, &from);
  for (int i = 0; i < collectives; ++i) {
    MPI_Request request;
    MPI_Ibarrier(from, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  for (int k = 0; k < 12; ++k) {
    const int busy = 1 + k % (size - 1);
    for (int i = 0; i < kEdges; ++i) sources[i] = busy, degrees[i] = 1, targets[i] = i % 10 ? busy : i % size;
    MPI_Comm made;
    MPI_Dist_graph_create(from, rank == 0 ? kEdges : 0, sources, degrees, targets, unweighted, MPI_INFO_NULL, 0, &made);
    int in, out, weighted;
    MPI_Dist_graph_neighbors_count(made, &in, &out, &weighted);
    CHECK(out == (rank == busy ? kEdges : 0) && !weighted);
    MPI_Comm_free(&made);
  }
  MPI_Comm_free(&from);
}

typedef struct {
  MPI_Comm graphs[2][kKinds], grid, path, lonely; /* graphs: [weighted][kind] */
  MPI_Comm others[3];
} Topologies;

static Topologies make(int reorder) {
  Topologies t;
  t.grid = grid(reorder);
  t.path = path(reorder);
  for (int weighted = 0; weighted < 2; ++weighted) {
    t.graphs[weighted][0] = distributed(1, weighted, reorder);
    t.graphs[weighted][1] = distributed(0, weighted, reorder);
    t.graphs[weighted][2] = adjacent(MPI_COMM_WORLD, weighted, reorder);
    t.graphs[weighted][3] = adjacent(t.grid, weighted, reorder);
    t.graphs[weighted][4] = adjacent(t.path, weighted, reorder);
  }
  t.lonely = lonely(reorder);
  t.others[0] = others(t.graphs[1][2]);
  t.others[1] = others(t.grid);
  t.others[2] = others(t.path);
  return t;
}

static void check(const Topologies* t) {
  for (int weighted = 0; weighted < 2; ++weighted)
    for (int kind = 0; kind < kKinds; ++kind) check_graph(t->graphs[weighted][kind], weighted);
  check_grid(t->grid);
  check_path(t->path);
  check_lonely(t->lonely);
  for (int i = 0; i < 3; ++i) check_others(t->others[i]);
}

static void drop(Topologies* t) {
  for (int weighted = 0; weighted < 2; ++weighted)
    for (int kind = 0; kind < kKinds; ++kind) MPI_Comm_free(&t->graphs[weighted][kind]);
  MPI_Comm_free(&t->grid);
  MPI_Comm_free(&t->path);
  MPI_Comm_free(&t->lonely);
  for (int i = 0; i < 3; ++i)
    if (t->others[i] != MPI_COMM_NULL) MPI_Comm_free(&t->others[i]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size <= kMost);
  int n = supersteps(argc, argv);
  Topologies kept[2] = {make(0), make(1)};
  for (int s = 0; going_on(s, n); ++s) {
    check(&kept[0]);
    check(&kept[1]);
    Topologies passing = make(s % 2);
    check(&passing);
    drop(&passing);
    if (s < 3) check_many(s);
    edge();
  }
  drop(&kept[0]);
  drop(&kept[1]);
  MPI_Finalize();
  printf("ok topologies\n");
  return 0;
}
