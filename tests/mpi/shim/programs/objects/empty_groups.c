/* Calls return MPI_GROUP_EMPTY as a group that the program frees, here in a later superstep, and epoch. */
#include "check.h"

enum { kGroups = 6 };

static MPI_Group world, first;

static void take_groups(MPI_Group* groups) {
  int nothing[1] = {0}, one[1] = {0};
  MPI_Group rest;
  MPI_Group_incl(world, 0, nothing, &groups[0]);
  MPI_Group_excl(first, 1, one, &groups[1]);
  MPI_Group_difference(first, world, &groups[2]);
  MPI_Group_union(groups[0], groups[1], &groups[3]);
  MPI_Group_excl(world, 1, one, &rest);
  MPI_Group_intersection(first, rest, &groups[4]);
  MPI_Group_range_incl(world, 0, NULL, &groups[5]);
  MPI_Group_free(&rest);
  for (int g = 0; g < kGroups; ++g) {
    int size = -1;
    MPI_Group_size(groups[g], &size);
    CHECK(size == 0 && groups[g] == MPI_GROUP_EMPTY);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Group groups[kGroups];
  int one[1] = {0};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, one, &first);
  take_groups(groups);
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    edge();
    for (int g = 0; g < kGroups; ++g) CHECK(MPI_Group_free(&groups[g]) == MPI_SUCCESS && groups[g] == MPI_GROUP_NULL);
    take_groups(groups);
    for (int g = 0; g < kGroups; ++g) CHECK(MPI_Group_free(&groups[g]) == MPI_SUCCESS);
    take_groups(groups);
  }
  for (int g = 0; g < kGroups; ++g) MPI_Group_free(&groups[g]);
  MPI_Group_free(&first);
  MPI_Group_free(&world);
  MPI_Finalize();
  printf("ok empty_groups\n");
  return 0;
}
