/* Collectives on other communicators than the edge's: in three of four supersteps some ranks begin one before the edge,
 * others after it. On the ranks that begin it first it completes at once, as they only send. */
#include "check.h"

static int rank, size, first;            /* first: this rank begins the collective of this superstep before the edge */
static MPI_Comm copy, fan, side, across; /* fan: rank 0 sends to all others */
static MPI_Request carried;              /* a persistent broadcast */
static int carried_word;

/* The edge, with what `begin` calls before it or after it. */
static void around_edge(void (*begin)(MPI_Request*), MPI_Request* request) {
  if (first) begin(request);
  edge();
  if (!first) begin(request);
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

static int word, sum, all[16];

static void begin_bcast(MPI_Request* request) { MPI_Ibcast(&word, 1, MPI_INT, 0, copy, request); }
static void bcast(int s, int out_of_step) {
  MPI_Request request;
  word = rank == 0 ? s : -1;
  first = !out_of_step || rank == 0;
  around_edge(begin_bcast, &request);
  CHECK(word == s);
}

static void begin_reduce(MPI_Request* request) { MPI_Ireduce(&word, &sum, 1, MPI_INT, MPI_SUM, 0, copy, request); }
static void reduce(int s, int out_of_step) {
  MPI_Request request;
  word = s + rank, sum = -1;
  first = !out_of_step || rank != 0;
  around_edge(begin_reduce, &request);
  CHECK(rank != 0 || sum == size * s + size * (size - 1) / 2);
}

static void begin_gather(MPI_Request* request) {
  MPI_Igather(&word, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD, request);
}
/* On the communicator of the edge, so all ranks must begin it before the edge. */
static void gather(int s, int out_of_step) {
  MPI_Request request;
  word = s + rank;
  first = 1;
  (void)out_of_step;
  around_edge(begin_gather, &request);
  for (int r = 0; rank == 0 && r < size; ++r) CHECK(all[r] == s + r);
}

static void begin_carried(MPI_Request* request) { MPI_Start(request); }
static void persistent(int s, int out_of_step) {
  carried_word = rank == 0 ? s : -1;
  first = !out_of_step || rank == 0;
  around_edge(begin_carried, &carried);
  CHECK(carried_word == s);
}

static void begin_fan(MPI_Request* request) {
  MPI_Ineighbor_allgather(&word, 1, MPI_INT, &sum, 1, MPI_INT, fan, request);
}
static void neighbours(int s, int out_of_step) {
  MPI_Request request;
  word = s + rank, sum = -1;
  first = !out_of_step || rank == 0;
  around_edge(begin_fan, &request);
  CHECK(sum == (rank == 0 ? -1 : s));
}

static void begin_across(MPI_Request* request) {
  const int root = rank % 2 != 0 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Ibcast(&word, 1, MPI_INT, root, across, request);
}
static void between_groups(int s, int out_of_step) { /* one side of an intercommunicator before the other */
  MPI_Request request;
  word = rank == 0 ? s : -1;
  first = !out_of_step || rank % 2 == 0;
  around_edge(begin_across, &request);
  CHECK(rank % 2 == 0 || word == s);
}

/* On two equal communicators that are new, one rank is ahead on one and all others are on the other. */
static void crosswise(int s, int out_of_step) {
  MPI_Comm made[2];
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Comm_dup(copy, &made[0]);
  MPI_Comm_idup(copy, &made[1], &requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  int seen = rank == 0 ? s : -1;
  word = s + rank, sum = -1;
  for (int part = 0; part < 2; ++part) {
    if (part == 1) edge();
    if ((!out_of_step || rank == 0) == (part == 0)) MPI_Ibcast(&seen, 1, MPI_INT, 0, made[0], &requests[0]);
    if ((!out_of_step || rank != 0) == (part == 0))
      MPI_Ireduce(&word, &sum, 1, MPI_INT, MPI_SUM, 0, made[1], &requests[1]);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(seen == s && (rank != 0 || sum == size * s + size * (size - 1) / 2));
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&made[i]);
}

/* One side is done with one of two equal intercommunicators. */
static void half_freed(int s, int out_of_step) {
  MPI_Comm made;
  MPI_Comm_dup(across, &made);
  if (!out_of_step || rank % 2 == 0) MPI_Comm_free(&made);
  edge();
  if (made == MPI_COMM_NULL) return;
  int others = 0;
  MPI_Comm_remote_size(made, &others);
  CHECK(s >= 0 && others == (size + 1) / 2);
  MPI_Comm_free(&made);
}

/* A persistent collective that a rank frees before the edge and others free after it: the next one must stay the next. */
static void freed(int s, int out_of_step) {
  MPI_Request requests[2];
  int one = rank == 0 ? s : -1, two = rank == 0 ? s + 1000 : -1;
  MPI_Bcast_init(&one, 1, MPI_INT, 0, copy, MPI_INFO_NULL, &requests[0]);
  MPI_Bcast_init(&two, 1, MPI_INT, 0, copy, MPI_INFO_NULL, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(one == s && two == s + 1000);
  if (!out_of_step || rank == 0) MPI_Request_free(&requests[0]);
  edge();
  if (requests[0] != MPI_REQUEST_NULL) MPI_Request_free(&requests[0]);
  two = rank == 0 ? s + 2000 : -1;
  MPI_Start(&requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  CHECK(two == s + 2000);
  MPI_Request_free(&requests[1]);
}

int main(int argc, char** argv) {
  static void (*const kinds[])(int, int) = {bcast,          reduce,    gather,     persistent, neighbours,
                                            between_groups, crosswise, half_freed, freed};
  enum { kKinds = sizeof kinds / sizeof kinds[0] };
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size >= 3 && size <= 16);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  int from[1] = {0}, to[16];
  for (int r = 1; r < size; ++r) to[r - 1] = r;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank != 0, from, MPI_UNWEIGHTED, rank == 0 ? size - 1 : 0, to,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &fan);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &across);
  MPI_Bcast_init(&carried_word, 1, MPI_INT, 0, copy, MPI_INFO_NULL, &carried);
  const char* only = argc > 2 ? argv[2] : NULL; /* number of a kind */
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s)
    kinds[only != NULL ? atoi(only) : s % kKinds](s, s % 4 != 3);
  MPI_Request_free(&carried);
  MPI_Comm_free(&across);
  MPI_Comm_free(&side);
  MPI_Comm_free(&fan);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  printf("ok out_of_step\n");
  return 0;
}
