/* What a program makes over and over, and sometimes never frees, costs no more memory each time. */
#include "check.h"

static int rank, size;

static long resident_kib(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file != NULL) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Receives that are given up. */
static void give_up(int times) {
  static int word;
  for (int i = 0; i < times; ++i) {
    MPI_Request request;
    MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
}

/* A receive that is freed at once; its message comes later. */
static void receive_later(int s) {
  static int word = -1;
  int tag = s % 1000 + 8;
  MPI_Request request;
  CHECK(word == (s == 0 ? -1 : s - 1));
  MPI_Irecv(&word, 1, MPI_INT, (rank + 1) % size, tag, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  give_up(3);
  edge();
  MPI_Send(&s, 1, MPI_INT, (rank + size - 1) % size, tag, MPI_COMM_WORLD);
  for (int i = 0; i < 1000000 && *(volatile int*)&word != s; ++i) give_up(1); /* makes progress */
}

static void forget_groups(int times) {
  for (int i = 0; i < times; ++i) {
    MPI_Group group;
    int number = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Group_size(group, &number);
    CHECK(number == size);
  }
}

/* Several references to a group last, each until it is freed. */
static void keep_groups(MPI_Comm comm) {
  MPI_Group groups[3], alone;
  int number = 0, mine = -1, compared = -1;
  MPI_Comm_group(comm, &groups[0]);
  MPI_Comm_group(comm, &groups[1]);
  MPI_Group_free(&groups[0]);
  CHECK(groups[0] == MPI_GROUP_NULL);
  edge();
  MPI_Comm_group(comm, &groups[2]);
  MPI_Group_size(groups[1], &number);
  MPI_Group_rank(groups[1], &mine);
  MPI_Group_compare(groups[1], groups[2], &compared);
  CHECK(number == size && mine == rank && compared == MPI_IDENT);
  MPI_Group_free(&groups[1]);
  MPI_Group_incl(groups[2], 1, &rank, &alone);
  MPI_Group_size(alone, &number);
  CHECK(number == 1);
  MPI_Group_free(&groups[2]);
  MPI_Group_free(&alone);
}

static int handled;
static void on_error(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  handled = *code;
}

/* As a library does around a call of its own. */
static void replace_handlers(int times, MPI_Comm comm) {
  for (int i = 0; i < times; ++i) {
    MPI_Errhandler mine, old;
    MPI_Comm_get_errhandler(comm, &old);
    MPI_Comm_create_errhandler(on_error, &mine);
    MPI_Comm_set_errhandler(comm, mine);
    MPI_Errhandler_free(&mine);
    handled = 0;
    MPI_Comm_call_errhandler(comm, MPI_ERR_TAG);
    CHECK(handled == MPI_ERR_TAG);
    MPI_Comm_set_errhandler(comm, old);
  }
}

static MPI_Datatype pair;
static int wrong_type;
static void combine(int* in, int* inout, int length, MPI_Datatype type) {
  if (type != pair) ++wrong_type;
  for (int i = 0; i < 2 * length; ++i) inout[i] += in[i];
}

/* More functions than the shim has trampolines. */
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define MANY TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) TEN(12) TEN(13) TEN(14)
#define ONE(n)                                                                      \
  static void combine_##n(void* in, void* inout, int* length, MPI_Datatype* type) { \
    combine(in, inout, *length, *type);                                             \
  }
MANY
#undef ONE
#define ONE(n) combine_##n,
    static MPI_User_function* const functions[] = {MANY};
enum { kFunctions = sizeof functions / sizeof *functions };

static void use(MPI_Op op) {
  int in[2] = {1, 2}, out[2] = {10, 20};
  MPI_Reduce_local(in, out, 1, pair, op);
  CHECK(out[0] == 11 && out[1] == 22);
}

static void forget_operations(int times) {
  for (int i = 0; i < times; ++i) {
    MPI_Op op;
    MPI_Op_create(functions[0], 1, &op);
    use(op);
  }
  CHECK(wrong_type == 0);
}

/* While a persistent collective could start at any time. */
static void free_operations(void) {
  for (int i = 0; i < kFunctions; ++i) {
    MPI_Op op, same;
    MPI_Op_create(functions[i], 1, &op);
    MPI_Op_create(functions[i], 1, &same);
    MPI_Op_free(&op);
    use(same);
    MPI_Op_free(&same);
  }
  CHECK(wrong_type == 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Op of_request;
  MPI_Request persistent;
  int in[2] = {1, 2}, out[2];
  MPI_Op_create(functions[1], 1, &of_request);
  MPI_Allreduce_init(in, out, 1, pair, of_request, own, MPI_INFO_NULL, &persistent);
  for (int s = 0; going_on(s, n); ++s) {
    const int times = s == 1 ? 100000 : 3; /* not in the first superstep: MPI itself allocates there */
    const long before = resident_kib();
    give_up(times);
    forget_groups(times);
    replace_handlers(times, MPI_COMM_SELF);
    CHECK(s == 0 || resident_kib() < before + 8 * 1024);
    forget_operations(s == 1 ? 300 : 3);
    free_operations();
    receive_later(s);
    keep_groups(s % 2 == 0 ? MPI_COMM_WORLD : own);
    out[0] = out[1] = -1;
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    CHECK(out[0] == size && out[1] == 2 * size && wrong_type == 0);
  }
  MPI_Request_free(&persistent);
  MPI_Op_free(&of_request);
  MPI_Type_free(&pair);
  MPI_Comm_free(&own);
  MPI_Finalize();
  printf("ok repeated\n");
  return 0;
}
