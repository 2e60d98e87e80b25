/* Unusual first messages, and then the end of the epoch or of MPI: both ranks must still exist when late traffic
 * between them arrives (acknowledgements, FINs, the answer about a communicator's number).
 *
 * argv: seed, "end" (a few actions, then MPI_Finalize) or "steps" (a few in every superstep, until rank 0 got
 * SIGUSR1). All ranks draw the same actions. There is no other communication than theirs and, in supersteps, one
 * broadcast. */
#include "check.h"

enum { kBig = 300000, kSmall = 24 };

static int rank, size;
static unsigned state;
static char to_send[kBig], to_receive[kBig], bsend_buffer[4096 + MPI_BSEND_OVERHEAD];
static int bsend_attached = 0;

/* Every action has its own tags: a rank that is ahead must not send what an earlier MPI_ANY_SOURCE receives. */
static int actions_begun = 0;
static int tag(int n) { return n + 32 * (actions_begun % 1000); }

static int draw(int n) {
  state = state * 1664525u + 1013904223u;
  return (int)((state >> 8) % (unsigned)n);
}

/* Two different ranks. */
static void draw_pair(int* from, int* to) {
  *from = draw(size);
  *to = (*from + 1 + draw(size - 1)) % size;
}

static void check_bytes(const char* bytes, int n, int from) {
  for (int i = 0; i < n; i += 997) CHECK(bytes[i] == (char)from);
}

static void fill(void) { memset(to_send, rank, sizeof to_send); }

static void to_self(void) {
  int out = rank, in = -1;
  MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  CHECK(in == rank);
  MPI_Sendrecv(&out, 1, MPI_INT, rank, 2, &in, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void one_pair_of(int bytes, int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm)) {
  int from, to;
  draw_pair(&from, &to);
  if (rank == from) send(to_send, bytes, MPI_BYTE, to, tag(3), MPI_COMM_WORLD);
  if (rank == to) {
    MPI_Recv(to_receive, bytes, MPI_BYTE, from, tag(3), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_bytes(to_receive, bytes, from);
  }
}

static void one_pair(void) { one_pair_of(kSmall, MPI_Send); }
static void rendezvous(void) { one_pair_of(kBig, MPI_Send); }
static void synchronous(void) { one_pair_of(draw(2) ? kSmall : kBig, MPI_Ssend); }

static void buffered(void) {
  if (!bsend_attached) MPI_Buffer_attach(bsend_buffer, sizeof bsend_buffer);
  bsend_attached = 1;
  one_pair_of(kSmall, MPI_Bsend);
  if (draw(2)) {
    void* buffer;
    int bytes;
    MPI_Buffer_detach(&buffer, &bytes);
    bsend_attached = 0;
  }
}

static void unexpected(void) {
  const int step = 1 + draw(size - 1), many = 1 + draw(20);
  MPI_Request requests[20];
  for (int i = 0; i < many; ++i)
    MPI_Isend(to_send, kSmall, MPI_BYTE, (rank + step) % size, tag(i), MPI_COMM_WORLD, &requests[i]);
  for (int i = many - 1; i >= 0; --i) {
    MPI_Recv(to_receive, kSmall, MPI_BYTE, (rank + size - step) % size, tag(i), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_bytes(to_receive, kSmall, (rank + size - step) % size);
  }
  MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
}

/* Both connect to each other at the same time. */
static void crossing(void) {
  int one, other;
  draw_pair(&one, &other);
  const int bytes = draw(2) ? kSmall : kBig;
  if (rank != one && rank != other) return;
  const int peer = rank == one ? other : one;
  MPI_Sendrecv(to_send, bytes, MPI_BYTE, peer, tag(4), to_receive, bytes, MPI_BYTE, peer, tag(4), MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  check_bytes(to_receive, bytes, peer);
}

static void probed(void) {
  int from, to, matched = draw(2);
  draw_pair(&from, &to);
  if (rank == from) MPI_Send(to_send, kSmall, MPI_BYTE, to, tag(5), MPI_COMM_WORLD);
  if (rank != to) return;
  MPI_Message message;
  if (matched) {
    MPI_Mprobe(MPI_ANY_SOURCE, tag(5), MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(to_receive, kSmall, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  } else {
    MPI_Probe(from, tag(5), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(to_receive, kSmall, MPI_BYTE, MPI_ANY_SOURCE, tag(5), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  check_bytes(to_receive, kSmall, from);
}

/* The sender doesn't learn when it has been received. */
static void forgotten(void) {
  int from, to;
  draw_pair(&from, &to);
  const int bytes = draw(2) ? kSmall : kBig;
  if (rank == from) {
    MPI_Request request;
    MPI_Isend(to_send, bytes, MPI_BYTE, to, tag(6), MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  if (rank == to) {
    MPI_Recv(to_receive, bytes, MPI_BYTE, from, tag(6), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_bytes(to_receive, bytes, from);
  }
}

static void reduction(void) {
  const int root = draw(size);
  int sum = -1;
  MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  CHECK(rank != root || sum == size * (size - 1) / 2);
}

static void broadcast_of_last(void) {
  int value = rank;
  MPI_Bcast(&value, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  CHECK(value == size - 1);
}

static void flood(void) {
  const int root = draw(size);
  MPI_Status status;
  if (rank != root)
    for (int i = 0; i < 50; ++i) MPI_Send(to_send, kSmall, MPI_BYTE, root, tag(7), MPI_COMM_WORLD);
  else
    for (int i = 0; i < 50 * (size - 1); ++i) {
      MPI_Recv(to_receive, kSmall, MPI_BYTE, MPI_ANY_SOURCE, tag(7), MPI_COMM_WORLD, &status);
      check_bytes(to_receive, kSmall, status.MPI_SOURCE);
    }
}

static void duplicate(void) {
  MPI_Comm made;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  if (draw(2)) MPI_Comm_free(&made);
}

static void duplicate_later(void) {
  MPI_Comm made;
  MPI_Request request;
  MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  int value = rank;
  MPI_Bcast(&value, 1, MPI_INT, draw(size), made);
  if (draw(2)) MPI_Comm_free(&made);
}

/* A communicator of some ranks, created by them alone; a ring or a duplicate in it. */
static void of_group(void) {
  const int first = draw(size - 1), count = 2 + draw(size - first - 1), then = draw(3), keep = draw(2);
  if (rank < first || rank >= first + count) return;
  int range[1][3] = {{first, first + count - 1, 1}};
  MPI_Group all, some;
  MPI_Comm made, again;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_range_incl(all, 1, range, &some);
  MPI_Comm_create_group(MPI_COMM_WORLD, some, tag(8), &made);
  MPI_Group_free(&all);
  MPI_Group_free(&some);
  if (then == 0) {
    int me, in = -1;
    MPI_Comm_rank(made, &me);
    MPI_Sendrecv(&rank, 1, MPI_INT, (me + 1) % count, 9, &in, 1, MPI_INT, (me + count - 1) % count, 9, made,
                 MPI_STATUS_IGNORE);
    CHECK(in == first + (me + count - 1) % count);
  } else if (then == 1) {
    MPI_Request request;
    MPI_Comm_idup(made, &again, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&again);
  }
  if (!keep) MPI_Comm_free(&made);
}

static void split(void) {
  MPI_Comm made;
  const int parts = 1 + draw(3);
  MPI_Comm_split(MPI_COMM_WORLD, rank % parts, -rank, &made);
  int members, all[64];
  MPI_Comm_size(made, &members);
  MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, made);
  for (int i = 1; i < members; ++i) CHECK(all[i] < all[i - 1]);
  MPI_Comm_free(&made);
}

/* The communicator is freed before its messages have arrived. */
static void freed_meanwhile(void) {
  MPI_Comm made;
  MPI_Request requests[2];
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  const int step = 1 + draw(size - 1), bytes = draw(2) ? kSmall : kBig;
  MPI_Irecv(to_receive, bytes, MPI_BYTE, (rank + size - step) % size, 10, made, &requests[0]);
  MPI_Isend(to_send, bytes, MPI_BYTE, (rank + step) % size, 10, made, &requests[1]);
  MPI_Comm_free(&made);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  check_bytes(to_receive, bytes, (rank + size - step) % size);
}

static void barrier_later(void) {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void never_arrives(void) {
  MPI_Request request;
  MPI_Status status;
  int cancelled = 0;
  MPI_Irecv(to_receive, kSmall, MPI_BYTE, draw(size), tag(11), MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(cancelled);
}

static void two_sides(void) {
  MPI_Comm mine, inter, merged;
  const int upper = rank >= size / 2;
  MPI_Comm_split(MPI_COMM_WORLD, upper, 0, &mine);
  MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, upper ? 0 : size / 2, tag(12), &inter);
  MPI_Intercomm_merge(inter, upper, &merged);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&mine);
}

static void everything_to_all(void) {
  int out[64], in[64];
  for (int i = 0; i < size; ++i) out[i] = rank;
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) CHECK(in[i] == i);
}

static void window(void) {
  static int cell;
  MPI_Win win;
  const int from = draw(size), to = draw(size);
  cell = -1;
  MPI_Win_create(&cell, sizeof cell, sizeof cell, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  if (rank == from) MPI_Put(&rank, 1, MPI_INT, to, 0, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  CHECK(cell == (rank == to ? from : -1));
  MPI_Win_free(&win);
}

static void (*const kActions[])(void) = {
    to_self,       one_pair,        rendezvous,        synchronous, buffered,          unexpected,
    crossing,      probed,          forgotten,         reduction,   broadcast_of_last, flood,
    duplicate,     duplicate_later, of_group,          split,       freed_meanwhile,   barrier_later,
    never_arrives, two_sides,       everything_to_all, window};

static void some_actions(void) {
  for (int i = draw(3); i >= 0; --i, ++actions_begun) kActions[draw((int)(sizeof kActions / sizeof *kActions))]();
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  const int seed = atoi(argv[1]), steps = strcmp(argv[2], "steps") == 0;
  signal(SIGUSR1, on_enough);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size >= 2 && size <= 64);
  fill();
  state = (unsigned)seed * 2654435761u;
  for (int enough = !steps; !enough;) {
    some_actions();
    usleep(500);
    enough = got_enough;
    MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  some_actions();
  MPI_Finalize();
  printf("ok first_messages\n");
  return 0;
}
