/* Partitioned requests of one communicator, peer and tag: they match in the order in which both sides made them, whatever the order in
 * which they start and become ready (MPI 4.1, 4.2). No other message has such a tag, and no wildcard matches them. */
#include "check.h"

enum { kSame = 3, kParts = 2, kTag = 5 };

static int rank, size, next, previous;
static MPI_Request send[kSame], receive[kSame];
static int out[kSame][kParts], in[kSame][kParts];

static void make(void) {
  for (int i = 0; i < kSame; ++i) {
    MPI_Psend_init(out[i], kParts, 1, MPI_INT, next, kTag, MPI_COMM_WORLD, MPI_INFO_NULL, &send[i]);
    MPI_Precv_init(in[i], kParts, 1, MPI_INT, previous, kTag, MPI_COMM_WORLD, MPI_INFO_NULL, &receive[i]);
  }
}

static void release(void) {
  for (int i = 0; i < kSame; ++i) MPI_Request_free(&send[i]), MPI_Request_free(&receive[i]);
}

static void exchange(int s) {
  for (int k = 0; k < kSame; ++k) { /* receives from the last to the first, sends in an order that changes */
    MPI_Start(&receive[kSame - 1 - k]);
    const int i = (k + s + rank) % kSame;
    for (int p = 0; p < kParts; ++p) out[i][p] = 1000 * rank + 10 * i + p + s;
    MPI_Start(&send[i]);
    for (int p = kParts - 1; p >= 0; --p) MPI_Pready(p, send[i]);
  }
  for (int i = 0; i < kSame; ++i) {
    MPI_Status status;
    MPI_Wait(&receive[i], &status);
    CHECK(status.MPI_TAG == kTag && status.MPI_SOURCE == previous);
    for (int p = 0; p < kParts; ++p) CHECK(in[i][p] == 1000 * previous + 10 * i + p + s);
  }
  MPI_Waitall(kSame, send, MPI_STATUSES_IGNORE);
}

static void start_send(MPI_Request* request) {
  MPI_Start(request);
  MPI_Pready_range(0, kParts - 1, *request);
}

/* Receives and probes with wildcards see the message that was sent after the partitioned one, and that one alone. */
static void match_no_wildcard(int s) {
  int word = -1, other = -1;
  MPI_Request any;
  MPI_Status status;
  MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
  for (int i = 0; i < kSame; ++i) out[i][0] = s + i, out[i][1] = rank, start_send(&send[i]);
  for (int i = 0; i < 2; ++i) MPI_Send(&s, 1, MPI_INT, next, 40 + i, MPI_COMM_WORLD);
  MPI_Wait(&any, &status);
  CHECK(word == s && status.MPI_SOURCE == previous && status.MPI_TAG == 40);
  MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  CHECK(status.MPI_SOURCE == previous && status.MPI_TAG == 41);
  MPI_Recv(&other, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  CHECK(other == s && status.MPI_TAG == 41);
  MPI_Startall(kSame, receive);
  MPI_Waitall(kSame, receive, MPI_STATUSES_IGNORE);
  MPI_Waitall(kSame, send, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kSame; ++i) CHECK(in[i][0] == s + i && in[i][1] == previous);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int *largest = NULL, found = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &found);
  CHECK(found);
  make();
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    exchange(s);
    match_no_wildcard(s);
    if (s % 3 == 2) release(), make();
    /* No tag that a program may use receives what another request has sent. */
    MPI_Request any;
    int other = -1, bit = s % 31, tag = (1 << bit) | kTag;
    if (bit < 31 && tag <= *largest) {
      MPI_Irecv(&other, 1, MPI_INT, previous, tag, MPI_COMM_WORLD, &any);
      exchange(s);
      MPI_Send(&rank, 1, MPI_INT, next, tag, MPI_COMM_WORLD);
      MPI_Wait(&any, MPI_STATUS_IGNORE);
      CHECK(other == previous);
    }
    edge();
  }
  release();
  MPI_Finalize();
  printf("ok partitions\n");
  return 0;
}
