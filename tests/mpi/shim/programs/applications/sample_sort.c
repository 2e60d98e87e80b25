/* A repeated parallel sample sort of records with new data each time: splitters by Gather and Bcast, records by
 * Alltoallv, ends checked against the neighbours', sums by Reduce with a user operation. */
#include <stddef.h>

#include "check.h"

struct record {
  unsigned key;
  int owner;
  double weight;
};

static int by_key(const void* a, const void* b) {
  const unsigned x = ((const struct record*)a)->key, y = ((const struct record*)b)->key;
  return (x > y) - (x < y);
}
static int by_value(const void* a, const void* b) {
  const unsigned x = *(const unsigned*)a, y = *(const unsigned*)b;
  return (x > y) - (x < y);
}

static MPI_Datatype record_type;

/* The sum of weights and keys, record by record. */
static void add_records(void* in, void* inout, int* length, MPI_Datatype* type) {
  const struct record* a = in;
  struct record* b = inout;
  CHECK(*type == record_type);
  for (int i = 0; i < *length; ++i) {
    b[i].key += a[i].key;
    b[i].owner += a[i].owner;
    b[i].weight += a[i].weight;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int lengths[3] = {1, 1, 1};
  const MPI_Aint places[3] = {offsetof(struct record, key), offsetof(struct record, owner),
                              offsetof(struct record, weight)};
  const MPI_Datatype members[3] = {MPI_UNSIGNED, MPI_INT, MPI_DOUBLE};
  MPI_Datatype plain;
  MPI_Type_create_struct(3, lengths, places, members, &plain);
  MPI_Type_create_resized(plain, 0, sizeof(struct record), &record_type);
  MPI_Type_commit(&record_type);
  MPI_Type_free(&plain);
  MPI_Op add;
  MPI_Op_create(add_records, 1, &add);

  enum { kSamples = 8 };
  unsigned seed = 12345u + (unsigned)rank;
  for (int s = 0; going_on(s, n); ++s) {
    const int count = 200 + (rank * 37 + s * 13) % 100;
    struct record* mine = malloc((size_t)count * sizeof *mine);
    struct record before = {0, 0, 0}, after = {0, 0, 0}, all_before, all_after;
    for (int i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;
      mine[i] = (struct record){seed >> 8, 1, 0.5 * (i + rank)};
      before.key += mine[i].key;
      before.owner += 1;
      before.weight += mine[i].weight;
    }
    qsort(mine, (size_t)count, sizeof *mine, by_key);

    unsigned samples[kSamples], *all = malloc((size_t)size * sizeof samples), splitters[64];
    for (int i = 0; i < kSamples; ++i) samples[i] = mine[i * count / kSamples].key;
    MPI_Gather(samples, kSamples, MPI_UNSIGNED, all, kSamples, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      qsort(all, (size_t)(size * kSamples), sizeof *all, by_value);
      for (int r = 1; r < size; ++r) splitters[r - 1] = all[r * kSamples];
    }
    MPI_Bcast(splitters, size - 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);

    int send[64] = {0}, receive[64], send_at[64], receive_at[64], total = 0;
    for (int i = 0, to = 0; i < count; ++i) {
      while (to < size - 1 && mine[i].key >= splitters[to]) ++to;
      ++send[to];
    }
    MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0, at = 0; r < size; ++r) {
      send_at[r] = at;
      at += send[r];
      receive_at[r] = total;
      total += receive[r];
    }
    struct record* sorted = malloc((size_t)(total + 1) * sizeof *sorted);
    MPI_Alltoallv(mine, send, send_at, record_type, sorted, receive, receive_at, record_type, MPI_COMM_WORLD);
    qsort(sorted, (size_t)total, sizeof *sorted, by_key);
    for (int i = 0; i < total; ++i) {
      if (i > 0) CHECK(sorted[i - 1].key <= sorted[i].key);
      after.key += sorted[i].key;
      after.owner += sorted[i].owner;
      after.weight += sorted[i].weight;
    }
    /* No record is lost, and this rank's records follow those of lower ranks. */
    MPI_Allreduce(&before, &all_before, 1, record_type, add, MPI_COMM_WORLD);
    MPI_Allreduce(&after, &all_after, 1, record_type, add, MPI_COMM_WORLD);
    CHECK(all_before.key == all_after.key && all_before.owner == all_after.owner &&
          all_before.weight == all_after.weight);
    unsigned top = total > 0 ? sorted[total - 1].key : 0, below = 0;
    MPI_Exscan(&top, &below, 1, MPI_UNSIGNED, MPI_MAX, MPI_COMM_WORLD);
    if (rank > 0 && total > 0) CHECK(below <= sorted[0].key);
    int counts[64], at[64], sum = 0;
    MPI_Gather(&total, 1, MPI_INT, counts, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    for (int r = 0; rank == size - 1 && r < size; ++r) {
      at[r] = sum;
      sum += counts[r];
    }
    struct record* whole = malloc((size_t)(sum + 1) * sizeof *whole);
    MPI_Gatherv(sorted, total, record_type, whole, counts, at, record_type, size - 1, MPI_COMM_WORLD);
    for (int i = 1; i < sum; ++i) CHECK(whole[i - 1].key <= whole[i].key);
    if (rank == size - 1) CHECK(sum == all_before.owner);
    free(whole);
    free(sorted);
    free(all);
    free(mine);
    edge();
  }
  MPI_Op_free(&add);
  MPI_Type_free(&record_type);
  MPI_Finalize();
  printf("ok sample_sort\n");
  return 0;
}
