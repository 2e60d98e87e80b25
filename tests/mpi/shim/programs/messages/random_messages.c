/* random_messages SUPERSTEPS [SEED]: in each superstep every rank sends some messages at random, in all modes, and receives
 * some of those that have been sent to it, at random too: by each kind of receive and probe, with and without wildcards.
 * So messages of all ages cross each edge. Every rank can compute what the others send, and checks MPI's order: the
 * earliest of its sender, communicator and, unless that is a wildcard, tag. A synchronous send that has completed has been
 * received, or at least matched. */
#include "check.h"

enum { kComms = 3, kTags = 3, kMostPending = 24, kMostSends = 4096, kMostMatched = 3 };
enum Mode { kIsend, kIssend, kBsend, kSendInit, kSsendInit, kFreed, kModes };

typedef struct Message {
  int src, dst, comm, tag, id, bytes;
  enum Mode mode;
} Message;

typedef struct Send {
  Message message;
  int* data;
  MPI_Request request;
} Send;

static int rank, size, ids;
static MPI_Comm comms[kComms];
static int rank_in[kComms][64]; /* of each world rank */
static int world_of[kComms][64];

static unsigned next_of(unsigned* state) {
  *state ^= *state << 13, *state ^= *state >> 17, *state ^= *state << 5;
  return *state;
}
static int below(unsigned* state, int n) { return (int)(next_of(state) % (unsigned)n); }

/* The messages of a superstep come from one generator, which all ranks run. */
static Message next_message(unsigned* state, int src) {
  static const int sizes[8] = {16, 16, 20, 400, 5000, 70000, 140000, 16};
  Message m = {.src = src, .dst = below(state, size), .comm = below(state, kComms), .tag = below(state, kTags)};
  m.mode = (enum Mode)below(state, kModes);
  m.bytes = sizes[below(state, m.mode == kBsend ? 4 : 8)];
  m.id = ids++;
  return m;
}

/* --- Sending -------------------------------------------------------------------------------------------- */

static Send sends[kMostSends];
static int pending_sends;

static void start_send(const Message* m) {
  Send* s = &sends[pending_sends];
  CHECK(pending_sends < kMostSends);
  s->message = *m;
  s->data = malloc((size_t)m->bytes);
  CHECK(s->data != NULL);
  for (int i = 0; i < m->bytes / 4; ++i) s->data[i] = m->id + i;
  const int to = rank_in[m->comm][m->dst];
  const MPI_Comm comm = comms[m->comm];
  switch (m->mode) {
    case kIssend:
      MPI_Issend(s->data, m->bytes, MPI_BYTE, to, m->tag, comm, &s->request);
      break;
    case kSendInit:
      MPI_Send_init(s->data, m->bytes, MPI_BYTE, to, m->tag, comm, &s->request);
      break;
    case kSsendInit:
      MPI_Ssend_init(s->data, m->bytes, MPI_BYTE, to, m->tag, comm, &s->request);
      break;
    case kBsend:
      MPI_Bsend(s->data, m->bytes, MPI_BYTE, to, m->tag, comm);
      free(s->data);
      return;
    default:
      MPI_Isend(s->data, m->bytes, MPI_BYTE, to, m->tag, comm, &s->request);
      break;
  }
  if (m->mode == kSendInit || m->mode == kSsendInit) MPI_Start(&s->request);
  if (m->mode == kFreed)
    MPI_Request_free(&s->request); /* the data stay */
  else
    ++pending_sends;
}

static int is_synchronous(const Message* m) { return m->mode == kIssend || m->mode == kSsendInit; }

/* Ids of what each rank has received since the last call, from all ranks to all. */
static int received_ids[1 << 16], received_count;
static char* is_received; /* by id */
static int known_ids;

static void tell_received(void) {
  int counts[64], places[64], total = 0;
  MPI_Allgather(&received_count, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) places[i] = total, total += counts[i];
  int* all = malloc((size_t)(total + 1) * sizeof(int));
  MPI_Allgatherv(received_ids, received_count, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
  if (ids > known_ids) {
    is_received = realloc(is_received, (size_t)ids);
    memset(is_received + known_ids, 0, (size_t)(ids - known_ids));
    known_ids = ids;
  }
  for (int i = 0; i < total; ++i) is_received[all[i]] = 1;
  free(all);
  received_count = 0;
}

/* After all ranks have received what they want for now. */
static void complete_sends(int all) {
  int done[kMostSends];
  for (int i = 0; i < pending_sends; ++i) {
    if (all)
      MPI_Wait(&sends[i].request, MPI_STATUS_IGNORE), done[i] = 1;
    else
      MPI_Test(&sends[i].request, &done[i], MPI_STATUS_IGNORE);
  }
  tell_received();
  int left = 0;
  for (int i = 0; i < pending_sends; ++i) {
    Send* s = &sends[i];
    if (done[i]) {
      CHECK(!is_synchronous(&s->message) || is_received[s->message.id]);
      if (s->request != MPI_REQUEST_NULL) MPI_Request_free(&s->request);
      free(s->data);
    } else {
      sends[left++] = *s;
    }
  }
  pending_sends = left;
}

/* --- Receiving ------------------------------------------------------------------------------------------ */

static Message expected[1 << 14]; /* sent to this rank and neither received nor matched, in order */
static int expected_count;

typedef struct Matched {
  Message message;
  MPI_Message handle;
} Matched;
static Matched matched[kMostMatched];
static int matched_count;

/* Of those that a receive of this kind may get from the source that it got one from: the earliest. */
static Message take_expected(int comm, int source, int tag, int any_tag) {
  for (int i = 0; i < expected_count; ++i) {
    const Message m = expected[i];
    if (m.comm != comm || m.src != source || (!any_tag && m.tag != tag)) continue;
    CHECK(m.tag == tag);
    received_ids[received_count++] = m.id;
    memmove(&expected[i], &expected[i + 1], (size_t)(--expected_count - i) * sizeof expected[0]);
    return m;
  }
  CHECK(!"a message that was sent");
  exit(3);
}

static void check_data(const Message* m, const int* data, const MPI_Status* status) {
  int count = -1;
  MPI_Get_count(status, MPI_BYTE, &count);
  CHECK(count == m->bytes && status->MPI_TAG == m->tag && status->MPI_SOURCE == rank_in[m->comm][m->src]);
  for (int i = 0; i < m->bytes / 4; ++i) CHECK(data[i] == m->id + i);
}

static int data_in[1 << 16];

static void receive_matched(int i) {
  MPI_Status status;
  MPI_Request request;
  if (matched[i].message.id % 2)
    MPI_Mrecv(data_in, sizeof data_in, MPI_BYTE, &matched[i].handle, &status);
  else
    MPI_Imrecv(data_in, sizeof data_in, MPI_BYTE, &matched[i].handle, &request), MPI_Wait(&request, &status);
  check_data(&matched[i].message, data_in, &status);
  matched[i] = matched[--matched_count];
}

/* Some message is sure to be there for it. */
static void receive_one(unsigned* state) {
  const Message wanted = expected[below(state, expected_count)];
  const MPI_Comm comm = comms[wanted.comm];
  const int any_source = below(state, 2), any_tag = below(state, 2);
  const int source = any_source ? MPI_ANY_SOURCE : rank_in[wanted.comm][wanted.src];
  const int tag = any_tag ? MPI_ANY_TAG : wanted.tag;
  MPI_Status status;
  MPI_Request request;
  int there = 0;
  switch (below(state, 5)) {
    case 0:
      MPI_Recv(data_in, sizeof data_in, MPI_BYTE, source, tag, comm, &status);
      break;
    case 1:
      MPI_Irecv(data_in, sizeof data_in, MPI_BYTE, source, tag, comm, &request);
      MPI_Wait(&request, &status);
      break;
    case 2:
      MPI_Probe(source, tag, comm, &status);
      MPI_Recv(data_in, sizeof data_in, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
      break;
    case 3:
      while (!there) MPI_Iprobe(source, tag, comm, &there, &status);
      MPI_Recv(data_in, sizeof data_in, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
      break;
    default: {
      Matched* m = &matched[matched_count++];
      MPI_Mprobe(source, tag, comm, &m->handle, &status);
      m->message = take_expected(wanted.comm, world_of[wanted.comm][status.MPI_SOURCE], status.MPI_TAG, any_tag);
      if (matched_count == kMostMatched) receive_matched(below(state, kMostMatched));
      return;
    }
  }
  const Message m = take_expected(wanted.comm, world_of[wanted.comm][status.MPI_SOURCE], status.MPI_TAG, any_tag);
  check_data(&m, data_in, &status);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size <= 64);
  unsigned common = 2463534242u + (argc > 2 ? (unsigned)atoi(argv[2]) * 7919u : 0), own = common + 97u * (unsigned)rank;
  static char buffer[1 << 20];
  MPI_Buffer_attach(buffer, sizeof buffer);
  comms[0] = MPI_COMM_WORLD;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
  for (int c = 0; c < kComms; ++c) {
    int mine;
    MPI_Comm_rank(comms[c], &mine);
    MPI_Allgather(&mine, 1, MPI_INT, rank_in[c], 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) world_of[c][rank_in[c][r]] = r;
  }

  int s = 0;
  for (; going_on(s, n); ++s) {
    for (int src = 0; src < size; ++src)
      for (int left = below(&common, 6); left > 0; --left) {
        const Message m = next_message(&common, src);
        if (m.dst == rank) expected[expected_count++] = m;
        if (m.src == rank) start_send(&m);
      }
    for (int left = below(&own, 8); expected_count > 0 && (left > 0 || expected_count > kMostPending); --left)
      receive_one(&own);
    MPI_Barrier(comms[1]); /* an edge, too */
    complete_sends(0);
    edge();
  }
  while (expected_count > 0) receive_one(&own);
  while (matched_count > 0) receive_matched(0);
  MPI_Barrier(comms[1]);
  complete_sends(1);
  CHECK(pending_sends == 0);
  void* detached;
  int bytes;
  MPI_Buffer_detach(&detached, &bytes);
  MPI_Comm_free(&comms[1]);
  MPI_Comm_free(&comms[2]);
  MPI_Finalize();
  printf("ok random messages %d\n", ids);
  return 0;
}
