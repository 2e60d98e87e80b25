/* Communicators created in every way, groups and topologies: created once and used in every superstep; others are
 * created and freed. */
#include "check.h"

static int rank, size;

static int sum_of(MPI_Comm comm, int value) {
  int sum = -1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  MPI_Comm copy, half, reversed, even, ring, row, graph, neighbours, of_group, later;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_name(copy, "the copy");
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_split(copy, 0, -rank, &reversed);

  /* Even ranks only: a communicator without all ranks. */
  MPI_Group world_group, even_group, odd_group;
  MPI_Comm_group(MPI_COMM_WORLD, &world_group);
  int ranges[1][3] = {{0, size - 1, 2}};
  MPI_Group_range_incl(world_group, 1, ranges, &even_group);
  MPI_Group_difference(world_group, even_group, &odd_group);
  MPI_Comm_create(MPI_COMM_WORLD, even_group, &even);
  CHECK((even == MPI_COMM_NULL) == (rank % 2 == 1));
  of_group = MPI_COMM_NULL;
  if (rank % 2 == 0) MPI_Comm_create_group(MPI_COMM_WORLD, even_group, 7, &of_group);
  MPI_Request making;
  MPI_Comm_idup(half, &later, &making);
  MPI_Wait(&making, MPI_STATUS_IGNORE);

  int dims[2] = {0, 0}, periods[2] = {1, 1}, remain[2] = {0, 1}, coords[2];
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &ring);
  MPI_Cart_sub(ring, remain, &row);
  int index[16], edges[32];
  for (int i = 0; i < size; ++i)
    index[i] = 2 * (i + 1), edges[2 * i] = (i + size - 1) % size, edges[2 * i + 1] = (i + 1) % size;
  MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph);
  int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &neighbours);

  const int all = size * (size - 1) / 2;
  for (int s = 0; going_on(s, supersteps(argc, argv)); ++s) {
    char name[MPI_MAX_OBJECT_NAME];
    int length, result, n, r;
    CHECK(sum_of(copy, rank) == all);
    MPI_Comm_get_name(copy, name, &length);
    CHECK(strcmp(name, "the copy") == 0);
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0);
    MPI_Comm_compare(MPI_COMM_WORLD, copy, &result);
    CHECK(result == MPI_CONGRUENT);
    MPI_Comm_size(half, &n);
    CHECK(n == (size + 1 - rank % 2) / 2 && sum_of(half, 1) == n && sum_of(later, 1) == n);
    MPI_Comm_rank(reversed, &r);
    CHECK(r == size - 1 - rank && sum_of(reversed, rank) == all);
    if (even != MPI_COMM_NULL) CHECK(sum_of(even, 1) == (size + 1) / 2 && sum_of(of_group, 1) == (size + 1) / 2);

    MPI_Group_size(odd_group, &n);
    CHECK(n == size / 2);
    int mine = rank, in_even;
    MPI_Group_translate_ranks(world_group, 1, &mine, even_group, &in_even);
    CHECK(in_even == (rank % 2 ? MPI_UNDEFINED : rank / 2));
    MPI_Group again;
    MPI_Group_union(even_group, odd_group, &again);
    MPI_Group_compare(again, world_group, &result);
    CHECK(result == MPI_SIMILAR || result == MPI_IDENT);
    MPI_Group_free(&again);

    int got_dims[2], got_periods[2];
    MPI_Cart_get(ring, 2, got_dims, got_periods, coords);
    CHECK(got_dims[0] == dims[0] && got_dims[1] == dims[1] && got_periods[0] == 1);
    MPI_Cart_rank(ring, coords, &r);
    MPI_Comm_rank(ring, &n);
    CHECK(r == n);
    int source, dest, token = r + s, got = -1;
    MPI_Cart_shift(ring, 0, 1, &source, &dest);
    MPI_Sendrecv(&token, 1, MPI_INT, dest, 0, &got, 1, MPI_INT, source, 0, ring, MPI_STATUS_IGNORE);
    CHECK(got == source + s);
    CHECK(sum_of(row, 1) == dims[1]);
    int around[4];
    MPI_Neighbor_allgather(&token, 1, MPI_INT, around, 1, MPI_INT, ring);
    CHECK(around[0] == source + s && around[1] == dest + s);
    MPI_Graph_neighbors_count(graph, rank, &n);
    CHECK(n == 2 && sum_of(graph, rank) == all);
    token = rank + s;
    MPI_Neighbor_alltoall(&token, 1, MPI_INT, &got, 1, MPI_INT, neighbours);
    CHECK(got == left + s);

    if (s % 20 == 0) { /* created and freed */
      MPI_Comm brief, briefer;
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &brief);
      MPI_Comm_dup(MPI_COMM_SELF, &briefer);
      CHECK(sum_of(briefer, rank) == rank);
      MPI_Comm_free(&brief);
      MPI_Comm_free(&briefer);
      CHECK(brief == MPI_COMM_NULL);
    }
    usleep(1000);
    MPI_Barrier(s % 2 ? copy : MPI_COMM_WORLD); /* any communicator of all ranks is an edge */
  }
  MPI_Comm_free(&copy);
  MPI_Comm_free(&ring);
  MPI_Group_free(&world_group);
  MPI_Group_free(&even_group);
  MPI_Finalize();
  printf("ok communicators\n");
  return 0;
}
