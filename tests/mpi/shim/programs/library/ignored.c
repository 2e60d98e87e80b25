/* Arguments that MPI ignores may be anything: here counts of -1, MPI_DATATYPE_NULL, MPI_OP_NULL and invalid addresses.
 * Covers every collective of the generator's table SIGNIFICANT (sidecar/shim/generate.py), blocking, nonblocking and
 * persistent: MPI_IN_PLACE, ranks that aren't the root, intercommunicators with MPI_ROOT and MPI_PROC_NULL. Also
 * messages to and from MPI_PROC_NULL. */
#include "check.h"
#include "ignored_arguments.gen.h" /* BSP_COLLECTIVES_THAT_IGNORE(X) */

enum { kMost = 16, kNothing = -1 };

static int rank, size;
static MPI_Comm world;               /* a duplicate of the world, or an intercommunicator */
static int upper, peers;             /* in the intercommunicator: this side, the size of the other */
static int* const nowhere = (int*)8; /* an address that must not be read */
static MPI_Datatype* const no_types = (MPI_Datatype*)8;
static const MPI_Datatype none = MPI_DATATYPE_NULL;

/* Which collectives have been covered, in which of their three forms. */
#define WALKED(name) walked_##name,
enum { BSP_COLLECTIVES_THAT_IGNORE(WALKED) kCollectives };
static int forms_walked[kCollectives];

static void finish(MPI_Request* request, int persistent) {
  if (persistent) MPI_Start(request);
  MPI_Wait(request, MPI_STATUS_IGNORE);
  if (persistent) MPI_Request_free(request);
}

/* One call in the three forms. `again` restores what the call changes. */
#define THREE_FORMS(Name, name, again, ...)                         \
  do {                                                              \
    MPI_Request request;                                            \
    again;                                                          \
    MPI_##Name(__VA_ARGS__, world);                                 \
    AFTER;                                                          \
    again;                                                          \
    MPI_I##name(__VA_ARGS__, world, &request);                      \
    finish(&request, 0);                                            \
    AFTER;                                                          \
    again;                                                          \
    MPI_##Name##_init(__VA_ARGS__, world, MPI_INFO_NULL, &request); \
    finish(&request, 1);                                            \
    AFTER;                                                          \
    forms_walked[walked_##Name] = 1;                                \
  } while (0)

static int mine, all[kMost], ones[kMost], at[kMost], bytes_at[kMost];
static MPI_Datatype ints[kMost];

static void again_in_place(void) {
  for (int i = 0; i < size; ++i) all[i] = -1;
  all[rank] = rank;
  mine = rank;
}

static void check_all(void) {
  for (int i = 0; i < size; ++i) CHECK(all[i] == i);
}

static void within(int root) {
  const int am_root = rank == root;
#define AFTER \
  if (am_root) check_all()
  if (am_root) {
    THREE_FORMS(Gather, gather, again_in_place(), MPI_IN_PLACE, kNothing, none, all, 1, MPI_INT, root);
    THREE_FORMS(Gatherv, gatherv, again_in_place(), MPI_IN_PLACE, kNothing, none, all, ones, at, MPI_INT, root);
  } else {
    THREE_FORMS(Gather, gather, again_in_place(), &mine, 1, MPI_INT, nowhere, kNothing, none, root);
    THREE_FORMS(Gatherv, gatherv, again_in_place(), &mine, 1, MPI_INT, nowhere, nowhere, nowhere, none, root);
  }
#undef AFTER
  int got = -1;
#define AFTER CHECK(am_root || got == rank)
#define RESET                                \
  for (int i = 0; i < size; ++i) all[i] = i; \
  got = -1
  if (am_root) {
    THREE_FORMS(Scatter, scatter, RESET, all, 1, MPI_INT, MPI_IN_PLACE, kNothing, none, root);
    THREE_FORMS(Scatterv, scatterv, RESET, all, ones, at, MPI_INT, MPI_IN_PLACE, kNothing, none, root);
  } else {
    THREE_FORMS(Scatter, scatter, RESET, nowhere, kNothing, none, &got, 1, MPI_INT, root);
    THREE_FORMS(Scatterv, scatterv, RESET, nowhere, nowhere, nowhere, none, &got, 1, MPI_INT, root);
  }
#undef RESET
#undef AFTER
  int sum = 0;
#define AFTER CHECK(!am_root || sum == size * (size - 1) / 2)
  THREE_FORMS(Reduce, reduce, sum = rank, am_root ? MPI_IN_PLACE : &sum, am_root ? &sum : nowhere, 1, MPI_INT, MPI_SUM,
              root);
#undef AFTER
}

static void everyone(void) {
#define AFTER check_all()
  THREE_FORMS(Allgather, allgather, again_in_place(), MPI_IN_PLACE, kNothing, none, all, 1, MPI_INT);
  THREE_FORMS(Allgatherv, allgatherv, again_in_place(), MPI_IN_PLACE, kNothing, none, all, ones, at, MPI_INT);
#undef AFTER
#define RESET \
  for (int i = 0; i < size; ++i) all[i] = rank
#define AFTER check_all()
  THREE_FORMS(Alltoall, alltoall, RESET, MPI_IN_PLACE, kNothing, none, all, 1, MPI_INT);
  THREE_FORMS(Alltoallv, alltoallv, RESET, MPI_IN_PLACE, nowhere, nowhere, none, all, ones, at, MPI_INT);
  THREE_FORMS(Alltoallw, alltoallw, RESET, MPI_IN_PLACE, nowhere, nowhere, no_types, all, ones, bytes_at, ints);
#undef AFTER
#undef RESET
}

/* `root` is MPI_ROOT, MPI_PROC_NULL, or (on the other side) the root's rank there. */
static void between(int root) {
  const int am_root = root == MPI_ROOT, apart = root == MPI_PROC_NULL;
  int value = -1;
#define AFTER CHECK(am_root || apart || value == 42)
  if (apart)
    THREE_FORMS(Bcast, bcast, value = -1, nowhere, kNothing, none, root);
  else
    THREE_FORMS(Bcast, bcast, value = am_root ? 42 : -1, &value, 1, MPI_INT, root);
#undef AFTER
#define RESET                                     \
  for (int i = 0; i < kMost; ++i) all[i] = i + 1; \
  value = -1
#define AFTER CHECK(am_root || apart || value > 0)
  if (apart) {
    THREE_FORMS(Scatter, scatter, RESET, nowhere, kNothing, none, nowhere, kNothing, none, root);
    THREE_FORMS(Scatterv, scatterv, RESET, nowhere, nowhere, nowhere, none, nowhere, kNothing, none, root);
  } else if (am_root) {
    THREE_FORMS(Scatter, scatter, RESET, all, 1, MPI_INT, nowhere, kNothing, none, root);
    THREE_FORMS(Scatterv, scatterv, RESET, all, ones, at, MPI_INT, nowhere, kNothing, none, root);
  } else {
    THREE_FORMS(Scatter, scatter, RESET, nowhere, kNothing, none, &value, 1, MPI_INT, root);
    THREE_FORMS(Scatterv, scatterv, RESET, nowhere, nowhere, nowhere, none, &value, 1, MPI_INT, root);
  }
#undef AFTER
#undef RESET
#define RESET                                  \
  for (int i = 0; i < kMost; ++i) all[i] = -1; \
  value = 5
#define AFTER \
  for (int i = 0; am_root && i < peers; ++i) CHECK(all[i] == 5)
  if (apart) {
    THREE_FORMS(Gather, gather, RESET, nowhere, kNothing, none, nowhere, kNothing, none, root);
    THREE_FORMS(Gatherv, gatherv, RESET, nowhere, kNothing, none, nowhere, nowhere, nowhere, none, root);
  } else if (am_root) {
    THREE_FORMS(Gather, gather, RESET, nowhere, kNothing, none, all, 1, MPI_INT, root);
    THREE_FORMS(Gatherv, gatherv, RESET, nowhere, kNothing, none, all, ones, at, MPI_INT, root);
  } else {
    THREE_FORMS(Gather, gather, RESET, &value, 1, MPI_INT, nowhere, kNothing, none, root);
    THREE_FORMS(Gatherv, gatherv, RESET, &value, 1, MPI_INT, nowhere, nowhere, nowhere, none, root);
  }
#undef AFTER
#undef RESET
  int sum = 0;
#define AFTER CHECK(!am_root || sum == 3 * peers)
  if (apart)
    THREE_FORMS(Reduce, reduce, sum = 0, nowhere, nowhere, kNothing, none, MPI_OP_NULL, root);
  else if (am_root)
    THREE_FORMS(Reduce, reduce, sum = 0, nowhere, &sum, 1, MPI_INT, MPI_SUM, root);
  else
    THREE_FORMS(Reduce, reduce, sum = 3, &sum, nowhere, 1, MPI_INT, MPI_SUM, root);
#undef AFTER
}

static void to_no_process(void) {
  int x = 1, y = 2;
  MPI_Request requests[5];
  MPI_Status status;
  MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, world);
  MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, world, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && x == 1);
  MPI_Sendrecv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, &y, 1, MPI_INT, MPI_PROC_NULL, 1, world, MPI_STATUS_IGNORE);
  MPI_Isend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, world, &requests[0]);
  MPI_Irecv(&y, 1, MPI_INT, MPI_PROC_NULL, 1, world, &requests[1]);
  MPI_Send_init(&x, 1, MPI_INT, MPI_PROC_NULL, 1, world, &requests[2]);
  MPI_Recv_init(&y, 1, MPI_INT, MPI_PROC_NULL, 1, world, &requests[3]);
  MPI_Issend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, world, &requests[4]);
  MPI_Startall(2, requests + 2);
  MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[2]);
  MPI_Request_free(&requests[3]);
  CHECK(y == 2);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size >= 2 && size <= kMost);
  for (int i = 0; i < kMost; ++i) {
    ones[i] = 1;
    at[i] = i;
    bytes_at[i] = i * (int)sizeof(int);
    ints[i] = MPI_INT;
  }
  MPI_Comm whole, side, sides;
  upper = rank >= size / 2;
  peers = upper ? size / 2 : size - size / 2;
  MPI_Comm_dup(MPI_COMM_WORLD, &whole);
  MPI_Comm_split(MPI_COMM_WORLD, upper, 0, &side);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, upper ? 0 : size / 2, 1, &sides);
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    world = whole;
    for (int root = 0; root < size; ++root) within(root);
    everyone();
    to_no_process();
    world = sides;
    for (int root_side = 0; root_side < 2; ++root_side) {
      const int members = root_side ? size - size / 2 : size / 2, me = upper ? rank - size / 2 : rank;
      for (int root = 0; root < members; ++root)
        between(upper != root_side ? root : me == root ? MPI_ROOT : MPI_PROC_NULL);
    }
    edge();
  }
#define CHECK_WALKED(name) CHECK(forms_walked[walked_##name]);
  BSP_COLLECTIVES_THAT_IGNORE(CHECK_WALKED)
  MPI_Comm_free(&whole);
  MPI_Comm_free(&side);
  MPI_Comm_free(&sides);
  MPI_Finalize();
  printf("ok ignored\n");
  return 0;
}
