/* any_message SUPERSTEPS THING [DIRECTORY]: receives that match any message stay pending while the shim makes THING again in each epoch:
 * "window", "file", "communicators", "intercommunicator" or "all". They get the program's messages, and nothing else. */
#include "check.h"

enum { kReceives = 6, kCells = 4, kUntouched = -77, kRounds = 4 };

static int rank, size;

typedef struct {
  MPI_Comm comm; /* nothing of the program's travels here but what completes the receive */
  int source, tag, persistent;
  int cells[kCells];
  MPI_Request request;
} Receive;

static Receive receives[kReceives];

static void start(Receive* r) {
  for (int i = 0; i < kCells; ++i) r->cells[i] = kUntouched;
  if (r->persistent)
    MPI_Start(&r->request);
  else
    MPI_Irecv(r->cells, kCells, MPI_INT, r->source, r->tag, r->comm, &r->request);
}

static void is_untouched(Receive* r) {
  int done = -1;
  MPI_Request_get_status(r->request, &done, MPI_STATUS_IGNORE);
  CHECK(!done);
  for (int i = 0; i < kCells; ++i) CHECK(r->cells[i] == kUntouched);
}

/* In the order of posting: each gets the message that is sent in its turn. */
static void complete(Receive* r, int tag, int s) {
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  const int out[2] = {s, rank};
  MPI_Status status;
  int count = -1;
  MPI_Send(out, 2, MPI_INT, right, tag, r->comm);
  MPI_Wait(&r->request, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(status.MPI_SOURCE == left && status.MPI_TAG == tag && count == 2);
  CHECK(r->cells[0] == s && r->cells[1] == left && r->cells[2] == kUntouched);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  const char* thing = argc > 2 ? argv[2] : "all";
  const int all = !strcmp(thing, "all");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm copy, half = MPI_COMM_NULL, cart = MPI_COMM_NULL, inter = MPI_COMM_NULL;
  MPI_Win window = MPI_WIN_NULL, locked = MPI_WIN_NULL;
  MPI_File file = MPI_FILE_NULL;
  int cells[kCells] = {0}, *own = NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  if (all || !strcmp(thing, "window")) {
    MPI_Win_create(cells, sizeof cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_allocate(sizeof cells, sizeof *own, MPI_INFO_NULL, copy, &own, &locked);
    MPI_Win_lock_all(0, locked);
    MPI_Win_fence(0, window);
  }
  if (all || !strcmp(thing, "file")) {
    char path[512];
    snprintf(path, sizeof path, "%s/any_message", argc > 3 ? argv[3] : "/tmp");
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CHECK(file != MPI_FILE_NULL);
  }
  if (all || !strcmp(thing, "communicators")) {
    int dims[1] = {size}, periods[1] = {1};
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart);
  }
  if (all || !strcmp(thing, "intercommunicator")) {
    MPI_Comm side;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
    MPI_Intercomm_create(side, 0, copy, 1 - rank % 2, 5, &inter);
    MPI_Comm_free(&side);
  }
  /* 32767: the highest tag that every MPI has. */
  const struct {
    MPI_Comm comm;
    int source, tag, persistent;
  } wanted[kReceives] = {{MPI_COMM_WORLD, MPI_ANY_SOURCE, 0, 0},
                         {MPI_COMM_WORLD, MPI_ANY_SOURCE, 32767, 0},
                         {MPI_COMM_WORLD, (rank + size - 1) % size, MPI_ANY_TAG, 0},
                         {MPI_COMM_WORLD, MPI_ANY_SOURCE, MPI_ANY_TAG, 0},
                         {copy, MPI_ANY_SOURCE, MPI_ANY_TAG, 1},
                         {copy, MPI_ANY_SOURCE, MPI_ANY_TAG, 0}};
  const int tags[kReceives] = {0, 32767, 9, 8, 0, 32767};
  for (int i = 0; i < kReceives; ++i) {
    Receive* r = &receives[i];
    r->comm = wanted[i].comm, r->source = wanted[i].source, r->tag = wanted[i].tag,
    r->persistent = wanted[i].persistent;
    if (r->persistent) MPI_Recv_init(r->cells, kCells, MPI_INT, r->source, r->tag, r->comm, &r->request);
    start(r);
  }

  int s = 0;
  for (; going_on(s, n); ++s) {
    edge();
    for (int i = 0; i < kReceives; ++i) is_untouched(&receives[i]);
    if (s % kRounds != kRounds - 1) continue;
    MPI_Barrier(copy); /* every rank has looked */
    for (int i = 0; i < kReceives; ++i) complete(&receives[i], tags[i], s);
    MPI_Barrier(copy);
    for (int i = 0; i < kReceives; ++i) start(&receives[i]);
    if (window != MPI_WIN_NULL) MPI_Win_fence(0, window);
  }
  for (int i = 0; i < kReceives; ++i) is_untouched(&receives[i]);
  MPI_Barrier(copy);
  for (int i = 0; i < kReceives; ++i) complete(&receives[i], tags[i], s);
  for (int i = 0; i < kReceives; ++i)
    if (receives[i].persistent) MPI_Request_free(&receives[i].request);
  if (window != MPI_WIN_NULL) {
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    MPI_Win_free(&window);
    MPI_Win_unlock_all(locked);
    MPI_Win_free(&locked);
  }
  if (file != MPI_FILE_NULL) MPI_File_close(&file);
  if (half != MPI_COMM_NULL) MPI_Comm_free(&half), MPI_Comm_free(&cart);
  if (inter != MPI_COMM_NULL) MPI_Comm_free(&inter);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  printf("ok any message %d\n", s);
  return 0;
}
