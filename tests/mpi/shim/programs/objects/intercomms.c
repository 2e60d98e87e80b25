/* Two groups that work on different things and communicate over an intercommunicator; communicators from every other
 * call there is. All are created once and used in all epochs. */
#include "check.h"

static int sum_of(MPI_Comm comm, int value) {
  int sum = -1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int side = rank % 2, evens = (size + 1) / 2, odds = size / 2;

  MPI_Comm half, inter, copy, merged, group_made, shared, dup, later, created, parent;
  MPI_Comm_get_parent(&parent);
  CHECK(parent == MPI_COMM_NULL);
  MPI_Comm_split(MPI_COMM_WORLD, side, -rank, &half); /* in reverse order */
  int half_rank, half_size, remote, is_inter = 0;
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_size);
  /* The leader is rank 0 of each half, which is the highest of its parity. */
  const int highest_even = 2 * (evens - 1), highest_odd = 2 * odds - 1;
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? highest_even : highest_odd, 17, &inter);
  MPI_Comm_set_name(inter, "between halves");
  MPI_Comm_dup(inter, &copy);
  MPI_Intercomm_merge(inter, side, &merged);
  MPI_Group own_side;
  MPI_Comm_group(inter, &own_side);
  MPI_Comm_create(inter, own_side, &created);
  MPI_Group_free(&own_side);

  MPI_Group world_group, first_two, remote_group;
  MPI_Comm_group(MPI_COMM_WORLD, &world_group);
  const int members[2] = {1, 0};
  MPI_Group_incl(world_group, 2, members, &first_two);
  group_made = MPI_COMM_NULL;
  if (rank < 2) MPI_Comm_create_group(MPI_COMM_WORLD, first_two, 5, &group_made);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_source", "true");
  MPI_Info_set(info, "an_unknown_key", "with a value");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, info, &shared);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &dup);
  MPI_Request request;
  MPI_Comm_idup(half, &later, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_set_name(later, "half, later");
  int shared_size = 0;
  MPI_Comm_size(shared, &shared_size);
  CHECK(shared_size >= 1);
  MPI_Comm_remote_group(inter, &remote_group);

  for (int s = 0; going_on(s, n); ++s) {
    MPI_Comm_test_inter(inter, &is_inter);
    MPI_Comm_remote_size(inter, &remote);
    CHECK(is_inter && remote == (side ? evens : odds));
    char name[MPI_MAX_OBJECT_NAME];
    int length, flag, result;
    MPI_Comm_get_name(inter, name, &length);
    CHECK(!strcmp(name, "between halves"));
    MPI_Comm_get_name(later, name, &length);
    CHECK(!strcmp(name, "half, later"));

    /* This rank's place in its half equals that of its partner in the other, if there is one. */
    if (half_rank < remote) {
      int out = rank * 100 + s, in = -1, partner = -1;
      MPI_Group_translate_ranks(remote_group, 1, &half_rank, world_group, &partner);
      MPI_Status status;
      MPI_Sendrecv(&out, 1, MPI_INT, half_rank, 3, &in, 1, MPI_INT, half_rank, 3, s % 2 ? inter : copy, &status);
      CHECK(in == partner * 100 + s && partner % 2 != side && status.MPI_SOURCE == half_rank);
    }
    /* A reduction over an intercommunicator gives each side the other's sum. */
    const int even_sum = evens * (evens - 1), odd_sum = odds * odds;
    CHECK(sum_of(inter, rank) == (side ? even_sum : odd_sum));
    CHECK(sum_of(created, rank) == (side ? even_sum : odd_sum));
    int word = side == 0 && half_rank == 0 ? s : -1;
    MPI_Bcast(&word, 1, MPI_INT, side ? 0 : half_rank == 0 ? MPI_ROOT : MPI_PROC_NULL, copy);
    if (side) CHECK(word == s);

    int merged_rank = -1, merged_size = 0;
    MPI_Comm_rank(merged, &merged_rank);
    MPI_Comm_size(merged, &merged_size);
    CHECK(merged_size == size && merged_rank == (side ? evens + half_rank : half_rank));
    CHECK(sum_of(merged, 1) == size && sum_of(half, 1) == half_size && sum_of(later, 1) == half_size);
    CHECK(sum_of(dup, rank) == size * (size - 1) / 2 && sum_of(shared, 1) == shared_size);
    if (group_made != MPI_COMM_NULL) {
      int r = -1;
      MPI_Comm_rank(group_made, &r);
      CHECK(r == 1 - rank && sum_of(group_made, rank) == 1);
    }
    MPI_Comm_compare(dup, MPI_COMM_WORLD, &result);
    CHECK(result == MPI_CONGRUENT);

    MPI_Info hints;
    char value[64] = "";
    MPI_Comm_get_info(dup, &hints);
    MPI_Info_get(hints, "mpi_assert_no_any_source", sizeof value - 1, value, &flag);
    CHECK(flag && !strcmp(value, "true"));
    MPI_Info_free(&hints);
    int keys = 0;
    MPI_Info_get_nkeys(info, &keys);
    MPI_Info_get(info, "an_unknown_key", sizeof value - 1, value, &flag);
    CHECK(keys == 2 && flag && !strcmp(value, "with a value"));

    if (s % 10 == 0) { /* some are created and freed */
      MPI_Comm again, both;
      MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? highest_even : highest_odd, 18, &again);
      MPI_Intercomm_merge(again, !side, &both);
      CHECK(sum_of(both, rank) == size * (size - 1) / 2);
      MPI_Comm_free(&both);
      MPI_Comm_disconnect(&again);
    }
    edge();
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&created);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&half);
  MPI_Info_free(&info);
  MPI_Finalize();
  printf("ok intercomms\n");
  return 0;
}
