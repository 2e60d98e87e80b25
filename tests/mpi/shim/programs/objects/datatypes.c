/* Derived datatypes and user operations, created once and used in every superstep. */
#include <stddef.h>

#include "check.h"

typedef struct {
  int id;
  double place[3];
  char mark;
} Particle;

typedef struct {
  double a, b; /* the map x -> a x + b: composition doesn't commute */
} Affine;

static MPI_Datatype affine;
static int wrong_type = 0;

static void compose(void* in, void* inout, int* n, MPI_Datatype* type) {
  Affine *f = in, *g = inout;
  if (*type != affine) wrong_type = 1;
  for (int i = 0; i < *n; ++i) g[i] = (Affine){f[i].a * g[i].a, f[i].b * g[i].a + g[i].b};
}

static void largest(void* in, void* inout, int* n, MPI_Datatype* type) {
  int *a = in, *b = inout;
  if (*type != MPI_INT) wrong_type = 1;
  for (int i = 0; i < *n; ++i) b[i] = a[i] > b[i] ? a[i] : b[i];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;

  enum { kSide = 6 };
  MPI_Datatype column, particle, fields, block, scattered, pair, darray;
  MPI_Type_vector(kSide, 1, kSide, MPI_INT, &column);
  MPI_Type_commit(&column);
  int lengths[3] = {1, 3, 1};
  MPI_Aint places[3] = {offsetof(Particle, id), offsetof(Particle, place), offsetof(Particle, mark)};
  MPI_Datatype parts[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
  MPI_Type_create_struct(3, lengths, places, parts, &fields);
  MPI_Type_create_resized(fields, 0, sizeof(Particle), &particle);
  MPI_Type_commit(&particle);
  MPI_Type_free(&fields); /* survives inside the other */
  MPI_Type_set_name(particle, "particle");
  int sizes[2] = {kSide, kSide}, sub[2] = {2, 3}, start[2] = {1, 2};
  MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, MPI_INT, &block);
  MPI_Type_commit(&block);
  int where[3] = {0, 7, 30}, how_many[3] = {1, 2, 3};
  MPI_Type_indexed(3, how_many, where, MPI_INT, &scattered);
  MPI_Type_commit(&scattered);
  MPI_Type_dup(scattered, &pair);
  int whole[1] = {4 * size}, spread[1] = {MPI_DISTRIBUTE_BLOCK}, by[1] = {MPI_DISTRIBUTE_DFLT_DARG}, grid[1] = {size};
  MPI_Type_create_darray(size, rank, 1, whole, spread, by, grid, MPI_ORDER_C, MPI_INT, &darray);
  MPI_Type_commit(&darray);
  MPI_Type_contiguous(2, MPI_DOUBLE, &affine);
  MPI_Type_commit(&affine);
  MPI_Datatype parametrised, whole_number, two_parametrised; /* a Fortran type, but not only for Fortran */
  MPI_Type_create_f90_real(6, 30, &parametrised);
  MPI_Type_create_f90_integer(9, &whole_number);
  MPI_Type_contiguous(2, parametrised, &two_parametrised);
  MPI_Type_commit(&two_parametrised);
  MPI_Op composed, biggest;
  MPI_Op_create(compose, 0, &composed);
  MPI_Op_create(largest, 1, &biggest);

  for (int s = 0; going_on(s, supersteps(argc, argv)); ++s) {
    int out[kSide * kSide], in[kSide * kSide], count;
    for (int i = 0; i < kSide * kSide; ++i) out[i] = 1000 * rank + i + s, in[i] = -1;
    MPI_Status status;
    MPI_Sendrecv(out + 1, 1, column, right, 0, in + 2, 1, column, left, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, column, &count);
    CHECK(count == 1);
    MPI_Get_elements(&status, column, &count);
    CHECK(count == kSide);
    for (int i = 0; i < kSide; ++i) CHECK(in[2 + kSide * i] == 1000 * left + kSide * i + 1 + s && in[kSide * i] == -1);
    MPI_Sendrecv(out, 1, block, right, 0, in, 6, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in[0] == 1000 * left + kSide + 2 + s && in[5] == 1000 * left + 2 * kSide + 4 + s);
    MPI_Sendrecv(out, 1, pair, right, 0, in, 6, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in[0] == 1000 * left + s && in[2] == 1000 * left + 8 + s && in[5] == 1000 * left + 32 + s);

    Particle p[4], q[4];
    memset(q, 0, sizeof q);
    for (int i = 0; i < 4; ++i) p[i] = (Particle){rank + i, {s, i, 0.5}, (char)('a' + i)};
    MPI_Sendrecv(p, 4, particle, right, 1, q, 4, particle, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; ++i) CHECK(q[i].id == left + i && q[i].place[0] == s && q[i].mark == 'a' + i);
    MPI_Aint low, extent;
    MPI_Type_get_extent(particle, &low, &extent);
    char name[MPI_MAX_OBJECT_NAME];
    int length, bytes, integers, addresses, types, combiner;
    MPI_Type_get_name(particle, name, &length);
    CHECK(extent == sizeof(Particle) && strcmp(name, "particle") == 0);
    MPI_Type_get_envelope(block, &integers, &addresses, &types, &combiner);
    CHECK(combiner == MPI_COMBINER_SUBARRAY && types == 1);
    MPI_Type_size(darray, &bytes);
    CHECK(bytes == 16);
    char packed[64];
    int at = 0;
    MPI_Pack(out, 1, pair, packed, sizeof packed, &at, MPI_COMM_WORLD);
    CHECK(at == 24);

    Affine mine = {1 + rank, s % 5}, all, expected = {1, s % 5};
    MPI_Allreduce(&mine, &all, 1, affine, composed, MPI_COMM_WORLD);
    for (int r = 1; r < size; ++r) expected = (Affine){expected.a * (1 + r), expected.b * (1 + r) + s % 5};
    CHECK(all.a == expected.a && all.b == expected.b);
    int best = -1, value = rank + s;
    MPI_Allreduce(&value, &best, 1, MPI_INT, biggest, MPI_COMM_WORLD);
    CHECK(best == size - 1 + s && !wrong_type);
    MPI_Datatype again;
    MPI_Type_create_f90_real(6, 30, &again); /* the same arguments, the same type (MPI 4.1, 19.1.9) */
    CHECK(again == parametrised);
    MPI_Type_size(parametrised, &bytes);
    CHECK(bytes == 4 || bytes == 8);
    int precision_and_range[2];
    MPI_Type_get_envelope(parametrised, &integers, &addresses, &types, &combiner);
    CHECK(combiner == MPI_COMBINER_F90_REAL && integers == 2 && addresses == 0 && types == 0);
    MPI_Type_get_contents(parametrised, 2, 0, 0, precision_and_range, NULL, NULL);
    CHECK(precision_and_range[0] == 6 && precision_and_range[1] == 30);
    MPI_Type_get_contents(two_parametrised, 1, 0, 1, &integers, NULL, &again);
    CHECK(integers == 2 && again == parametrised);
    int number = 100 * rank + s, got = -1;
    MPI_Sendrecv(&number, 1, whole_number, right, 2, &got, 1, whole_number, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 100 * left + s);
    if (s % 50 == 0) {
      MPI_Datatype brief;
      MPI_Type_create_hvector(2, 1, 8, column, &brief);
      MPI_Type_free(&brief);
      CHECK(brief == MPI_DATATYPE_NULL);
    }
    edge();
  }
  MPI_Op_free(&composed);
  MPI_Type_free(&column);
  MPI_Finalize();
  printf("ok datatypes\n");
  return 0;
}
