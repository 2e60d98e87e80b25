/* Requests and messages of random_objects. */
#include "random_objects.h"

/* --- Receives that match any message --------------------------------------------------------------------------- */

/* All are on MPI_COMM_WORLD, where nothing else of the program's travels: so each that ends gets the oldest one's message. */
enum { kWildcards = 64, kCells = 3, kUntouched = -77 };

typedef struct {
  int cells[kCells], persistent;
  MPI_Request request;
} Wildcard;

static Wildcard wildcards[kWildcards];
static int first_wildcard, last_wildcard;

static void* make_wildcard(int id) {
  (void)id;
  Wildcard* w = &wildcards[last_wildcard++ % kWildcards];
  CHECK(last_wildcard - first_wildcard < kWildcards);
  for (int i = 0; i < kCells; ++i) w->cells[i] = kUntouched;
  w->persistent = draw(2);
  if (w->persistent) MPI_Recv_init(w->cells, kCells, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &w->request);
  if (w->persistent)
    MPI_Start(&w->request);
  else
    MPI_Irecv(w->cells, kCells, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &w->request);
  MPI_Barrier(base); /* before any rank sends the message that ends it */
  return w;
}

static void use_wildcard(void* data, int id, int s) {
  (void)data, (void)id, (void)s;
  int done = -1;
  for (int i = first_wildcard; i < last_wildcard; ++i) {
    Wildcard* w = &wildcards[i % kWildcards];
    MPI_Request_get_status(w->request, &done, MPI_STATUS_IGNORE);
    CHECK(!done);
    for (int c = 0; c < kCells; ++c) CHECK(w->cells[c] == kUntouched);
  }
  MPI_Barrier(base); /* nobody sends before all have looked */
}

static void end_wildcard(void* data, int id) {
  (void)data;
  Wildcard* w = &wildcards[first_wildcard++ % kWildcards];
  const int out[2] = {id, rank}, by = 1 + draw(3), tag = draw(2) ? 0 : 32767;
  MPI_Status status;
  MPI_Barrier(base); /* as the messages of two that end come from different ranks */
  MPI_Send(out, 2, MPI_INT, right_of(by), tag, MPI_COMM_WORLD);
  MPI_Wait(&w->request, &status);
  CHECK(status.MPI_SOURCE == left_of(by) && status.MPI_TAG == tag);
  CHECK(w->cells[0] == id && w->cells[1] == left_of(by) && w->cells[2] == kUntouched);
  if (w->persistent) MPI_Request_free(&w->request);
  MPI_Barrier(base);
}

const Kind wildcard_kind = {"wildcard", make_wildcard, use_wildcard, end_wildcard};

/* --- Messages that are sent long before, or after, their receive ------------------------------------------------ */

enum Sending { kIsend, kIssend, kBsend, kSendInit, kSsendInit, kLate, kSendings };
enum Receiving { kIrecv, kRecv, kProbe, kMprobe, kRecvInit, kIsendrecv, kReceivings };

typedef struct {
  enum Sending sending;
  enum Receiving receiving;
  int by, ints, *out, *in, is_matched;
  MPI_Request send, receive;
  MPI_Message message;
} Delayed;

static void* make_message(int id) {
  static const int lengths[5] = {1, 30, 1000, 30000, 120000};
  Delayed* d = zeroed(sizeof *d);
  d->sending = (enum Sending)draw(kSendings);
  d->receiving = (enum Receiving)draw(kReceivings);
  d->by = draw(size);
  d->ints = lengths[draw(d->sending == kBsend ? 3 : 5)];
  const size_t bytes = (size_t)d->ints * sizeof(int);
  d->out = zeroed(bytes), d->in = zeroed(bytes);
  for (int i = 0; i < d->ints; ++i) d->out[i] = id + rank + i;
  d->send = d->receive = MPI_REQUEST_NULL;
  const int to = right_of(d->by), from = left_of(d->by);
  if (d->receiving == kIsendrecv) { /* both at once */
    MPI_Isendrecv(d->out, d->ints, MPI_INT, to, id, d->in, d->ints, MPI_INT, from, id, base, &d->receive);
    return d;
  }
  if (d->receiving == kIrecv) MPI_Irecv(d->in, d->ints, MPI_INT, from, id, base, &d->receive);
  if (d->receiving == kRecvInit) MPI_Recv_init(d->in, d->ints, MPI_INT, from, id, base, &d->receive);
  if (d->receiving == kRecvInit) MPI_Start(&d->receive);
  switch (d->sending) {
    case kIsend:
      MPI_Isend(d->out, d->ints, MPI_INT, to, id, base, &d->send);
      break;
    case kIssend:
      MPI_Issend(d->out, d->ints, MPI_INT, to, id, base, &d->send);
      break;
    case kBsend:
      MPI_Bsend(d->out, d->ints, MPI_INT, to, id, base);
      break;
    case kSendInit:
      MPI_Send_init(d->out, d->ints, MPI_INT, to, id, base, &d->send);
      MPI_Start(&d->send);
      break;
    case kSsendInit:
      MPI_Ssend_init(d->out, d->ints, MPI_INT, to, id, base, &d->send);
      MPI_Start(&d->send);
      break;
    default:
      break; /* when it is to end */
  }
  return d;
}

static void use_message(void* data, int id, int s) {
  (void)s;
  Delayed* d = data;
  if (d->receiving == kMprobe && d->sending != kLate && !d->is_matched) {
    MPI_Mprobe(left_of(d->by), id, base, &d->message, MPI_STATUS_IGNORE);
    d->is_matched = 1;
  }
}

static void receive_now(Delayed* d, int id) {
  const int from = left_of(d->by);
  MPI_Status status;
  int count = -1;
  switch (d->receiving) {
    case kProbe:
      MPI_Probe(from, id, base, &status);
      MPI_Get_count(&status, MPI_INT, &count);
      CHECK(count == d->ints);
      MPI_Recv(d->in, d->ints, MPI_INT, from, id, base, MPI_STATUS_IGNORE);
      break;
    case kMprobe:
      if (!d->is_matched) MPI_Mprobe(from, id, base, &d->message, MPI_STATUS_IGNORE);
      MPI_Mrecv(d->in, d->ints, MPI_INT, &d->message, &status);
      CHECK(status.MPI_SOURCE == from && status.MPI_TAG == id);
      break;
    case kRecv:
      MPI_Recv(d->in, d->ints, MPI_INT, from, id, base, MPI_STATUS_IGNORE);
      break;
    default:
      MPI_Wait(&d->receive, &status);
      CHECK(status.MPI_SOURCE == from && status.MPI_TAG == id);
  }
}

static void end_message(void* data, int id) {
  Delayed* d = data;
  if (d->receiving == kIsendrecv) {
    MPI_Wait(&d->receive, MPI_STATUS_IGNORE);
  } else {
    if (d->sending == kLate) MPI_Isend(d->out, d->ints, MPI_INT, right_of(d->by), id, base, &d->send);
    receive_now(d, id);
    MPI_Wait(&d->send, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < d->ints; ++i) CHECK(d->in[i] == id + left_of(d->by) + i);
  if (d->send != MPI_REQUEST_NULL) MPI_Request_free(&d->send);
  if (d->receive != MPI_REQUEST_NULL) MPI_Request_free(&d->receive);
  free(d->out), free(d->in), free(d);
}

const Kind message_kind = {"message", make_message, use_message, end_message};

/* --- Persistent requests, of two ranks or of all, that are started again and again ------------------------------ */

enum { kBoth = 2 };

typedef struct {
  int is_collective, active, started, of_what;
  int out[kBoth], in[kBoth];
  MPI_Request requests[kBoth];
} Persistent;

static void* make_persistent(int id) {
  Persistent* p = zeroed(sizeof *p);
  p->is_collective = draw(2);
  p->requests[1] = MPI_REQUEST_NULL;
  if (!p->is_collective) {
    MPI_Send_init(p->out, kBoth, MPI_INT, right_of(1), id, base, &p->requests[0]);
    MPI_Recv_init(p->in, kBoth, MPI_INT, draw(2) ? left_of(1) : MPI_ANY_SOURCE, id, base, &p->requests[1]);
    return p;
  }
  p->of_what = draw(3);
  if (p->of_what == 0)
    MPI_Allreduce_init(p->out, p->in, kBoth, MPI_INT, MPI_SUM, base, MPI_INFO_NULL, &p->requests[0]);
  else if (p->of_what == 1)
    MPI_Scan_init(p->out, p->in, kBoth, MPI_INT, MPI_MAX, base, MPI_INFO_NULL, &p->requests[0]);
  else
    MPI_Barrier_init(base, MPI_INFO_NULL, &p->requests[0]);
  return p;
}

static int started_requests(const Persistent* p) { return p->is_collective ? 1 : kBoth; }

static void wait_persistent(Persistent* p) {
  if (!p->active) return;
  MPI_Waitall(started_requests(p), p->requests, MPI_STATUSES_IGNORE);
  p->active = 0;
  if (!p->is_collective) CHECK(p->in[0] == p->started && p->in[1] == left_of(1));
  note(p->in[0]), note(p->in[1]);
}

static void use_persistent(void* data, int id, int s) {
  (void)id, (void)s;
  Persistent* p = data;
  wait_persistent(p);
  if (draw(3) == 0) return; /* inactive for a while */
  p->out[0] = ++p->started, p->out[1] = rank;
  MPI_Startall(started_requests(p), p->requests);
  p->active = 1;
  if (draw(2)) wait_persistent(p);
}

static void end_persistent(void* data, int id) {
  (void)id;
  Persistent* p = data;
  wait_persistent(p);
  for (int i = 0; i < started_requests(p); ++i) MPI_Request_free(&p->requests[i]);
  free(p);
}

const Kind persistent_kind = {"persistent", make_persistent, use_persistent, end_persistent};

/* --- Nonblocking collectives -------------------------------------------------------------------------------------- */

typedef struct {
  int out[64], in[64], what;
  MPI_Request request;
} Begun;

static void* make_collective(int id) {
  Begun* b = zeroed(sizeof *b);
  for (int i = 0; i < size; ++i) b->out[i] = id + 10 * rank + i;
  b->what = draw(6);
  const int root = draw(size);
  switch (b->what) {
    case 0:
      MPI_Iallreduce(b->out, b->in, size, MPI_INT, MPI_SUM, base, &b->request);
      break;
    case 1:
      MPI_Ialltoall(b->out, 1, MPI_INT, b->in, 1, MPI_INT, base, &b->request);
      break;
    case 2:
      MPI_Ibcast(b->out, size, MPI_INT, root, base, &b->request);
      break;
    case 3:
      MPI_Igather(b->out, 1, MPI_INT, b->in, 1, MPI_INT, root, base, &b->request);
      break;
    case 4:
      MPI_Iexscan(b->out, b->in, size, MPI_INT, MPI_SUM, base, &b->request);
      break;
    default:
      MPI_Ibarrier(base, &b->request);
  }
  return b;
}

static void use_collective(void* data, int id, int s) {
  (void)id, (void)s;
  Begun* b = data;
  int done;
  if (b->request != MPI_REQUEST_NULL) MPI_Test(&b->request, &done, MPI_STATUS_IGNORE);
}

static void end_collective(void* data, int id) {
  (void)id;
  Begun* b = data;
  MPI_Wait(&b->request, MPI_STATUS_IGNORE);
  for (int i = 0; i < size; ++i) note(b->in[i]), note(b->out[i]);
  free(b);
}

const Kind collective_kind = {"collective", make_collective, use_collective, end_collective};

/* --- Partitioned requests ------------------------------------------------------------------------------------------ */

enum { kParts = 4 };

typedef struct {
  int out[kParts], in[kParts], ready, active, turn;
  MPI_Request send, receive;
} Parts;

/* Open MPI 5.0's own partitioned requests may hang, those of the shim don't. They add nothing to the result. */
static int has_none(void) { return getenv("RANDOM_OBJECTS_UNPARTITIONED") != NULL; }

static void* make_partitioned(int id) {
  Parts* p = zeroed(sizeof *p);
  if (has_none()) return p;
  MPI_Psend_init(p->out, kParts, 1, MPI_INT, right_of(1), id, base, MPI_INFO_NULL, &p->send);
  MPI_Precv_init(p->in, kParts, 1, MPI_INT, left_of(1), id, base, MPI_INFO_NULL, &p->receive);
  return p;
}

static void some_ready(Parts* p, int many) {
  for (; many > 0 && p->ready < kParts; --many) {
    p->out[p->ready] = 100 * p->turn + 10 * p->ready + rank;
    if (!has_none()) MPI_Pready(p->ready, p->send);
    ++p->ready;
  }
}

static void wait_partitioned(Parts* p) {
  some_ready(p, kParts);
  p->active = 0;
  if (has_none()) return;
  MPI_Wait(&p->send, MPI_STATUS_IGNORE);
  MPI_Wait(&p->receive, MPI_STATUS_IGNORE);
  for (int i = 0; i < kParts; ++i) CHECK(p->in[i] == 100 * p->turn + 10 * i + left_of(1));
}

static void use_partitioned(void* data, int id, int s) {
  (void)id, (void)s;
  Parts* p = data;
  if (!p->active) {
    if (!has_none()) MPI_Start(&p->receive), MPI_Start(&p->send);
    p->active = 1, p->ready = 0, ++p->turn;
  }
  some_ready(p, draw(3));
  if (draw(3) == 0) wait_partitioned(p);
}

static void end_partitioned(void* data, int id) {
  (void)id;
  Parts* p = data;
  if (p->active) wait_partitioned(p);
  if (!has_none()) MPI_Request_free(&p->send), MPI_Request_free(&p->receive);
  free(p);
}

const Kind partitioned_kind = {"partitioned", make_partitioned, use_partitioned, end_partitioned};
