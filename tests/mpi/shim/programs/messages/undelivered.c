/* Messages that are sent before a superstep's edge and received after it, or several edges later: nobody has posted a
 * receive for them at the edge. In every way to send, to probe and to receive; synchronous sends complete only once
 * their receive has begun. And what else is under way at an edge.
 * argv[2]: "huge", or a file that ends the program as soon as a rank finds it. */
#include "check.h"

enum { kLarge = 1 << 18, kKept = 3 };

static int rank, size, right, left;
static MPI_Comm comm;

static void all_meet(void) { /* not an edge */
  int one = 1, sum;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size);
}

static int is_complete(MPI_Request request) {
  int flag = 0;
  for (int i = 0; i < 20; ++i) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  return flag;
}

static void send_int(int value, int tag) { MPI_Send(&value, 1, MPI_INT, right, tag, comm); }

static int receive_int(int source, int tag, MPI_Comm from) {
  int value = -1, count = -1;
  MPI_Status status;
  MPI_Recv(&value, 1, MPI_INT, source, tag, from, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 1 && (source == MPI_ANY_SOURCE || status.MPI_SOURCE == source) &&
        (tag == MPI_ANY_TAG || status.MPI_TAG == tag));
  return value;
}

/* --- What crosses the edge, each with a tag of its own -------------------------------------------------- */

static char bsend_buffer[4096];

static void send_simple(int s) {
  for (int i = 0; i < 3; ++i) send_int(10 * s + i, 1); /* in order */
  send_int(s, 2);
  send_int(s + 1, 3);
  MPI_Send(NULL, 0, MPI_INT, right, 4, comm);
  int value = s + 2;
  MPI_Bsend(&value, 1, MPI_INT, right, 5, comm);
  MPI_Request freed;
  static int of_freed[2];
  of_freed[0] = s + 3, of_freed[1] = s + 4;
  MPI_Isend(&of_freed[0], 1, MPI_INT, right, 6, comm, &freed);
  MPI_Request_free(&freed);
  MPI_Issend(&of_freed[1], 1, MPI_INT, right, 6, comm, &freed);
  MPI_Request_free(&freed);
  MPI_Send(&s, 1, MPI_INT, 0, 7, MPI_COMM_SELF);
}

static void receive_simple(int s) {
  MPI_Status status;
  int flag = 0, count = -1;
  CHECK(receive_int(left, 3, comm) == s + 1); /* not in the order in which they were sent */
  MPI_Iprobe(MPI_ANY_SOURCE, 2, comm, &flag, &status);
  if (flag) CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 2);
  CHECK(receive_int(MPI_ANY_SOURCE, 2, comm) == s);
  MPI_Message message;
  MPI_Mprobe(left, 1, comm, &message, &status);
  int first = -1;
  MPI_Mrecv(&first, 1, MPI_INT, &message, &status);
  CHECK(first == 10 * s && status.MPI_SOURCE == left);
  MPI_Probe(MPI_ANY_SOURCE, 1, comm, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 1 && receive_int(status.MPI_SOURCE, status.MPI_TAG, comm) == 10 * s + 1);
  CHECK(receive_int(left, 1, comm) == 10 * s + 2);
  MPI_Recv(NULL, 0, MPI_INT, left, 4, comm, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 0);
  CHECK(receive_int(left, 5, comm) == s + 2);
  CHECK(receive_int(left, 6, comm) == s + 3 && receive_int(left, 6, comm) == s + 4);
  CHECK(receive_int(0, 7, MPI_COMM_SELF) == s);
}

/* A message that needs a rendezvous, in every third element of an array; received as one block. */
static int large_out[3 * kLarge], large_in[kLarge];

static void send_large(int s, MPI_Datatype third, MPI_Request* request) {
  for (int i = 0; i < kLarge; ++i) large_out[3 * i] = s + i * (rank + 1);
  MPI_Isend(large_out, 1, third, right, 10, comm, request);
}

static void receive_large(int s, MPI_Request* request) {
  MPI_Status status;
  int count = -1;
  MPI_Recv(large_in, kLarge, MPI_INT, left, 10, comm, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == kLarge);
  for (int i = 0; i < kLarge; ++i) CHECK(large_in[i] == s + i * (left + 1));
  MPI_Wait(request, &status);
}

/* Standard, synchronous and standard again with one tag: only the second one waits for its receive. */
static int of_mixed[4];

static void send_mixed(int s, MPI_Request* requests) {
  for (int i = 0; i < 4; ++i) of_mixed[i] = 100 * s + i;
  MPI_Isend(&of_mixed[0], 1, MPI_INT, right, 11, comm, &requests[0]);
  MPI_Issend(&of_mixed[1], 1, MPI_INT, right, 11, comm, &requests[1]);
  MPI_Isend(&of_mixed[2], 1, MPI_INT, right, 11, comm, &requests[2]);
  MPI_Send(&of_mixed[3], 1, MPI_INT, right, 11, comm);
}

static void receive_mixed(int s, MPI_Request* requests) {
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
  CHECK(!is_complete(requests[1]));
  all_meet();
  CHECK(receive_int(left, 11, comm) == 100 * s);
  all_meet();
  CHECK(!is_complete(requests[1]));
  all_meet();
  CHECK(receive_int(left, 11, comm) == 100 * s + 1);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE); /* the others are still to be received */
  all_meet();
  CHECK(receive_int(left, 11, comm) == 100 * s + 2 && receive_int(left, 11, comm) == 100 * s + 3);
}

/* One that takes several edges to be received, while others with its tag come and go on another communicator. */
static int of_kept;

static void kept(int s, MPI_Request* request) {
  if (s % (kKept + 1) == 0) {
    of_kept = s;
    MPI_Issend(&of_kept, 1, MPI_INT, right, 12, comm, request);
  } else if (s % (kKept + 1) == kKept) {
    CHECK(!is_complete(*request));
    all_meet();
    CHECK(receive_int(left, 12, comm) == s - kKept);
    MPI_Wait(request, MPI_STATUS_IGNORE);
  } else {
    CHECK(!is_complete(*request));
  }
}

/* Many, from a rank that sends nothing to this one in a barrier of seven: they may arrive when it has ended. */
enum { kDistance = 3, kMany = 40, kManyBytes = 60000 };
static int many[kManyBytes / sizeof(int)];

static void send_many(int s) {
  for (int i = 0; i < kMany && size > kDistance; ++i) { /* none to itself */
    many[0] = s + i;
    MPI_Send(many, kManyBytes, MPI_BYTE, (rank + kDistance) % size, 18, comm);
  }
}

static void receive_many(int s) {
  for (int i = 0; i < kMany && size > kDistance; ++i) {
    MPI_Recv(many, kManyBytes, MPI_BYTE, (rank + kDistance * (size - 1)) % size, 18, comm, MPI_STATUS_IGNORE);
    CHECK(many[0] == s + i);
  }
}

/* A queue of messages with two tags, received in order by MPI_ANY_TAG. */
static void queue(int s, MPI_Comm queues) {
  MPI_Status status;
  int oldest = -1;
  MPI_Send(&s, 1, MPI_INT, right, s % 2, queues);
  if (s < kKept) return;
  MPI_Recv(&oldest, 1, MPI_INT, left, MPI_ANY_TAG, queues, &status);
  CHECK(oldest == s - kKept && status.MPI_TAG == oldest % 2);
}

/* Matched before the edge, received after it, not in order: an eager message, one that needs a rendezvous, a synchronous
 * one. And a receive posted since for the next one, which is sent after the edge. */
static int of_matched[kLarge], matched_in[kLarge], next_in[3];
static MPI_Request of_next;
static MPI_Comm matching; /* of all these messages alone */

static void match(int s, MPI_Message* matched, MPI_Request* sends) {
  MPI_Status status;
  for (int i = 0; i < kLarge; ++i) of_matched[i] = s + i;
  MPI_Isend(of_matched, 1, MPI_INT, right, 19, matching, &sends[0]);
  MPI_Isend(of_matched, kLarge, MPI_INT, right, 19, matching, &sends[1]);
  MPI_Issend(of_matched, 2, MPI_INT, right, 19, matching, &sends[2]);
  const int counts[3] = {1, kLarge, 2};
  for (int i = 0, count; i < 3; ++i) {
    MPI_Mprobe(MPI_ANY_SOURCE, 19, matching, &matched[i], &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == counts[i] && status.MPI_SOURCE == left);
  }
  MPI_Irecv(next_in, 3, MPI_INT, left, MPI_ANY_TAG, matching, &of_next);
}

static void receive_matched(int s, MPI_Message* matched, MPI_Request* sends) {
  MPI_Status status;
  MPI_Request request;
  int count = -1;
  matched[2] = MPI_Message_f2c(MPI_Message_c2f(matched[2]));
  MPI_Imrecv(matched_in, kLarge, MPI_INT, &matched[2], &request);
  MPI_Wait(&request, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 2 && matched_in[1] == s + 1 && status.MPI_TAG == 19 && matched[2] == MPI_MESSAGE_NULL);
  MPI_Wait(&sends[2], MPI_STATUS_IGNORE);
  MPI_Mrecv(matched_in, kLarge, MPI_INT, &matched[1], &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == kLarge && matched_in[kLarge - 1] == s + kLarge - 1 && status.MPI_SOURCE == left);
  MPI_Send(of_matched, 3, MPI_INT, right, 19, matching);
  MPI_Wait(&of_next, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 3 && next_in[2] == s + 2 && status.MPI_TAG == 19);
  MPI_Mrecv(matched_in, 1, MPI_INT, &matched[0], MPI_STATUS_IGNORE);
  CHECK(matched_in[0] == s && matched[0] == MPI_MESSAGE_NULL);
  MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
}

/* A partitioned send of which one part is ready, its receive begun; and a communicator that is being made. */
static void begin_others(int s, MPI_Request* parts, int* parts_out, MPI_Comm* copy, MPI_Request* copying) {
  MPI_Startall(2, parts);
  parts_out[1] = s;
  MPI_Pready(1, parts[0]);
  MPI_Comm_idup(comm, copy, copying);
}

static void end_others(int s, MPI_Request* parts, int* parts_out, const int* parts_in, MPI_Comm* copy,
                       MPI_Request* copying) {
  int arrived = -1;
  MPI_Parrived(parts[1], 0, &arrived);
  CHECK(!arrived);
  all_meet();
  parts_out[0] = -s;
  MPI_Pready(0, parts[0]);
  MPI_Waitall(2, parts, MPI_STATUSES_IGNORE);
  CHECK(parts_in[0] == -s && parts_in[1] == s);
  MPI_Wait(copying, MPI_STATUS_IGNORE);
  int sum = -1;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, *copy);
  CHECK(sum == size * (size - 1) / 2);
  MPI_Comm_free(copy);
}

/* Transfers of which each is larger than what a rank may take at a gate, but for which receives are posted. */
static int exchange_huge(int n) {
  const int bytes = 80 << 20;
  char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
  CHECK(out != NULL && in != NULL);
  for (int s = 0; going_on(s, n); ++s) {
    MPI_Request both[2];
    memset(out, s + rank, (size_t)bytes);
    MPI_Irecv(in, bytes, MPI_CHAR, left, 30, comm, &both[0]);
    MPI_Isend(out, bytes, MPI_CHAR, right, 30, comm, &both[1]);
    edge();
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    CHECK(in[0] == (char)(s + left) && in[bytes - 1] == (char)(s + left));
  }
  free(out), free(in);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  printf("ok huge\n");
  return 0;
}

/* Received into too short a buffer: the error is that of plain MPI, and the message is gone. */
static void receive_truncated(void) {
  int three[3] = {-1, -1, -1}, flag = 1, class = MPI_SUCCESS;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int rc = MPI_Recv(three, 2, MPI_INT, left, 13, comm, MPI_STATUS_IGNORE);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
  MPI_Error_class(rc, &class);
  CHECK(class == MPI_ERR_TRUNCATE && three[2] == -1);
  MPI_Iprobe(left, 13, comm, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  right = (rank + 1) % size, left = (rank + size - 1) % size;
  /* In another order than the world's, so that a rank has several numbers. */
  MPI_Comm_split(MPI_COMM_WORLD, 0, (rank + 1) % size, &comm);
  MPI_Comm_rank(comm, &rank);
  right = (rank + 1) % size, left = (rank + size - 1) % size;
  if (argc > 2 && !strcmp(argv[2], "huge")) return exchange_huge(n);
  MPI_Buffer_attach(bsend_buffer, sizeof bsend_buffer);
  MPI_Datatype third;
  MPI_Type_vector(kLarge, 1, 3, MPI_INT, &third);
  MPI_Type_commit(&third);
  MPI_Comm half, inter, queues;
  MPI_Comm_dup(comm, &queues);
  MPI_Comm_dup(comm, &matching);
  MPI_Comm_split(comm, rank == 0, 0, &half); /* rank 0, and all others */
  MPI_Intercomm_create(half, 0, comm, rank == 0 ? 1 : 0, 20, &inter);
  int of_persistent = -1;
  MPI_Request persistent, of_kept_request = MPI_REQUEST_NULL;
  int parts_out[3], parts_in[3];
  MPI_Request parts[2];
  MPI_Psend_init(parts_out, 3, 1, MPI_INT, right, 17, comm, MPI_INFO_NULL, &parts[0]);
  MPI_Precv_init(parts_in, 1, 3, MPI_INT, left, 17, comm, MPI_INFO_NULL, &parts[1]);
  int shares_out[2], shares_in[2];
  MPI_Request shares[2], copying;
  MPI_Comm copy;
  MPI_Psend_init(shares_out, 2, 1, MPI_INT, right, 21, comm, MPI_INFO_NULL, &shares[0]);
  MPI_Precv_init(shares_in, 2, 1, MPI_INT, left, 21, comm, MPI_INFO_NULL, &shares[1]);
  MPI_Ssend_init(&of_persistent, 1, MPI_INT, right, 14, comm, &persistent);

  for (int s = 0; going_on(s, n); ++s) {
    if (argc > 2 && !access(argv[2], F_OK)) got_enough = 1;
    MPI_Request large, mixed[3], reduction, both;
    send_simple(s);
    send_large(s, third, &large);
    send_mixed(s, mixed);
    kept(s, &of_kept_request);
    queue(s, queues);
    const int three[3] = {s, s, s};
    MPI_Send(three, 3, MPI_INT, right, 13, comm);
    of_persistent = 5 * s;
    MPI_Start(&persistent);
    if (rank < 2) MPI_Send(&s, 1, MPI_INT, 0, 15, inter);
    for (int i = 0; i < 3; ++i) parts_out[i] = 3 * s + i;
    MPI_Start(&parts[0]);
    MPI_Pready_range(0, 2, parts[0]);
    int sum = -1, in = -1;
    MPI_Iallreduce(&s, &sum, 1, MPI_INT, MPI_SUM, comm, &reduction);
    MPI_Isendrecv(&s, 1, MPI_INT, right, 16, &in, 1, MPI_INT, left, 16, comm, &both);
    int seen = 0;
    MPI_Status status;
    while (!seen) MPI_Iprobe(left, 2, comm, &seen, &status);
    send_many(s);
    MPI_Message matched[3];
    MPI_Request of_matches[3];
    match(s, matched, of_matches);
    begin_others(s, shares, shares_out, &copy, &copying);

    edge();

    MPI_Iprobe(left, 2, comm, &seen, &status);
    CHECK(seen && status.MPI_SOURCE == left); /* it was there before */
    if (s % 2 == 0) edge();                   /* some messages cross two */
    receive_simple(s);
    receive_large(s, &large);
    receive_mixed(s, mixed);
    receive_truncated();
    receive_many(s);
    receive_matched(s, matched, of_matches);
    end_others(s, shares, shares_out, shares_in, &copy, &copying);
    CHECK(!is_complete(persistent));
    all_meet();
    CHECK(receive_int(left, 14, comm) == 5 * s);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    CHECK(persistent != MPI_REQUEST_NULL);
    if (rank < 2) CHECK(receive_int(0, 15, inter) == s);
    MPI_Wait(&reduction, MPI_STATUS_IGNORE);
    MPI_Wait(&both, MPI_STATUS_IGNORE);
    CHECK(sum == s * size && in == s);
    MPI_Start(&parts[1]);
    MPI_Wait(&parts[1], &status);
    CHECK(status.MPI_TAG == 17 && parts_in[0] == 3 * s && parts_in[2] == 3 * s + 2);
    MPI_Wait(&parts[0], MPI_STATUS_IGNORE);
  }
  int of_last = -1, there = of_kept_request != MPI_REQUEST_NULL, left_over = 1;
  while (left_over) {
    MPI_Iprobe(left, MPI_ANY_TAG, queues, &left_over, MPI_STATUS_IGNORE);
    if (left_over) receive_int(left, MPI_ANY_TAG, queues);
  }
  if (there) {
    MPI_Recv(&of_last, 1, MPI_INT, left, 12, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&of_kept_request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&persistent);
  for (int i = 0; i < 2; ++i) MPI_Request_free(&parts[i]), MPI_Request_free(&shares[i]);
  MPI_Type_free(&third);
  MPI_Comm_free(&queues);
  MPI_Comm_free(&matching);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  MPI_Comm_free(&comm);
  void* detached;
  int bytes;
  MPI_Buffer_detach(&detached, &bytes);
  MPI_Finalize();
  printf("ok undelivered\n");
  return 0;
}
