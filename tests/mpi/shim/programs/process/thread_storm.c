/* thread_storm SUPERSTEPS [ROUNDS]: MPI_THREAD_MULTIPLE without a pause. In every superstep each of several threads
 * calls ROUNDS rounds of MPI functions on its own communicator, as fast as it can: blocking and nonblocking messages,
 * probes, collectives, persistent requests, and objects of every kind created and freed. Every received value is
 * checked. */
#include <time.h>

#include "team.h"

enum { kThreads = 4, kLong = 3000 };

static int rounds;

static int value(int from, int thread, int round, int what) {
  return from * 1000003 + thread * 10007 + round * 101 + what;
}

/* Calls for which ob1 caches one request: they are complete when they return. */
static void blocking(MPI_Comm comm, int me, int round) {
  int in = -1, out = value(rank, me, round, 1);
  MPI_Status status;
  if (rank % 2 == 0) {
    MPI_Send(&out, 1, MPI_INT, right, me, comm);
    MPI_Recv(&in, 1, MPI_INT, left, me, comm, &status);
  } else {
    MPI_Recv(&in, 1, MPI_INT, left, me, comm, &status);
    MPI_Send(&out, 1, MPI_INT, right, me, comm);
  }
  CHECK(in == value(left, me, round, 1) && status.MPI_SOURCE == left && status.MPI_TAG == me);
  out = value(rank, me, round, 2);
  MPI_Sendrecv(&out, 1, MPI_INT, left, 50 + me, &in, 1, MPI_INT, right, 50 + me, comm, &status);
  CHECK(in == value(right, me, round, 2) && status.MPI_SOURCE == right);
  out = value(rank, me, round, 3); /* to itself */
  MPI_Request request;
  MPI_Isend(&out, 1, MPI_INT, rank, 90, comm, &request);
  MPI_Recv(&in, 1, MPI_INT, rank, 90, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(in == value(rank, me, round, 3));
}

static void nonblocking(MPI_Comm comm, int me, int round) {
  int in[kLong], out[kLong];
  for (int i = 0; i < kLong; ++i) out[i] = value(rank, me, round, i);
  MPI_Request requests[2];
  MPI_Irecv(in, kLong, MPI_INT, left, 20 + me, comm, &requests[0]);
  MPI_Isend(out, kLong, MPI_INT, right, 20 + me, comm, &requests[1]);
  int done = 0;
  while (!done) MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kLong; ++i) CHECK(in[i] == value(left, me, round, i));
  MPI_Message message;
  MPI_Status status;
  int count = -1;
  MPI_Isend(out, 1 + round % 7, MPI_INT, right, 30 + me, comm, &requests[0]);
  MPI_Mprobe(left, 30 + me, comm, &message, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 1 + round % 7);
  MPI_Mrecv(in, count, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Waitany(1, requests, &done, MPI_STATUS_IGNORE);
  CHECK(in[count - 1] == value(left, me, round, count - 1) && done == 0);
}

static void collective(MPI_Comm comm, int me, int round) {
  long mine = rank + round, sum = -1;
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
  CHECK(sum == (long)size * (size - 1) / 2 + (long)size * round);
  int word = value(rank, me, round, 4);
  MPI_Bcast(&word, 1, MPI_INT, round % size, comm);
  CHECK(word == value(round % size, me, round, 4));
  int all[64];
  word = value(rank, me, round, 5);
  MPI_Allgather(&word, 1, MPI_INT, all, 1, MPI_INT, comm);
  for (int r = 0; r < size; ++r) CHECK(all[r] == value(r, me, round, 5));
  MPI_Request request;
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void add_words(void* in, void* inout, int* length, MPI_Datatype* type) {
  CHECK(*type == MPI_INT);
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void on_error(MPI_Comm* comm, int* code, ...) {
  int* seen = NULL;
  int found = 0;
  MPI_Comm_get_attr(*comm, MPI_TAG_UB, &seen, &found);
  CHECK(found && *code == MPI_ERR_OTHER);
}

static int copy_number(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm;
  (void)key;
  (void)extra;
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

/* User callbacks. */
static void callbacks(MPI_Comm comm, int me, int round) {
  MPI_Op op;
  MPI_Request request;
  int word = me + round, sum = -1;
  MPI_Op_create(add_words, 1, &op);
  MPI_Iallreduce(&word, &sum, 1, MPI_INT, op, comm, &request);
  MPI_Op_free(&op);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sum == size * (me + round));
  MPI_Errhandler handler, old;
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_get_errhandler(comm, &old);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  MPI_Comm_set_errhandler(comm, old);
  MPI_Errhandler_free(&old);
  int key = -1, found = 0, added = -1;
  void* value = NULL;
  MPI_Comm_create_keyval(copy_number, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(comm, key, (void*)(size_t)(round + 1));
  MPI_Comm_get_attr(comm, key, &value, &found);
  CHECK(found && (size_t)value == (size_t)round + 1);
  MPI_Comm copy;
  MPI_Comm_idup(comm, &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_get_attr(copy, key, &value, &found);
  CHECK(found && (size_t)value == (size_t)round + 1);
  MPI_Comm_free(&copy);
  MPI_Comm_delete_attr(comm, key);
  MPI_Comm_free_keyval(&key);
  if (round % 32 == 0) {
    MPI_Add_error_class(&added);
    CHECK(added > MPI_ERR_LASTCODE);
    MPI_Add_error_string(added, "ours");
  }
  struct timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  clock_gettime(CLOCK_MONOTONIC, &after);
  CHECK(after.tv_sec > before.tv_sec || (after.tv_sec == before.tv_sec && after.tv_nsec >= before.tv_nsec));
}

static void objects(MPI_Comm comm, int me, int round, MPI_Request* persistent, int* box) {
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  int two[2] = {rank, round}, got[2] = {-1, -1};
  MPI_Sendrecv(two, 1, pair, left, 60 + me, got, 1, pair, right, 60 + me, comm, MPI_STATUS_IGNORE);
  CHECK(got[0] == right && got[1] == round);
  MPI_Type_free(&pair);
  if (round % 8 == 0) { /* requests on a communicator that is freed, while other threads create and complete theirs */
    MPI_Comm other;
    MPI_Request held;
    MPI_Comm_dup(comm, &other);
    MPI_Recv_init(got, 1, MPI_INT, left, 70, other, &held);
    MPI_Comm_free(&other);
    MPI_Request_free(&held);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "k", "v");
    MPI_Info_free(&info);
    MPI_Group group;
    MPI_Comm_group(comm, &group);
    MPI_Group_free(&group);
  }
  box[0] = value(rank, me, round, 6);
  box[1] = -1;
  MPI_Startall(2, persistent);
  MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
  CHECK(box[1] == value(left, me, round, 6));
}

/* Communicators that all threads create at once, so that their order differs from rank to rank. Each is used in the
 * superstep in which it was created and, perhaps in another epoch, in the next. */
static void made_at_once(MPI_Comm comm, MPI_Comm kept[2], int me, int s) {
  MPI_Group all;
  if (s > 0) {
    for (int i = 0; i < 2; ++i) CHECK(around(value(rank, me, s, i), 91, kept[i]) == value(left, me, s, i));
    for (int i = 0; i < 2; ++i) MPI_Comm_free(&kept[i]);
  }
  MPI_Comm_dup(comm, &kept[0]);
  MPI_Comm_group(comm, &all);
  /* On one parent: the tag distinguishes them. No other thread uses it, because Open MPI 5.0.7 sends with it on the
   * parent. */
  MPI_Comm_create_group(MPI_COMM_WORLD, all, 1000 + me, &kept[1]);
  MPI_Group_free(&all);
  for (int i = 0; i < 2; ++i) CHECK(around(value(rank, me, s, i), 91, kept[i]) == value(left, me, s, i));
}

static void* work(void* argument) {
  const int me = (int)(size_t)argument;
  const MPI_Comm comm = comms[me];
  MPI_Comm kept[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
  int box[2] = {-1, -1};
  MPI_Request persistent[2]; /* carried across the epochs */
  MPI_Send_init(&box[0], 1, MPI_INT, right, 80 + me, comm, &persistent[0]);
  MPI_Recv_init(&box[1], 1, MPI_INT, left, 80 + me, comm, &persistent[1]);
  for (int s = 0; next_superstep(); ++s) {
    made_at_once(comm, kept, me, s);
    for (int r = s * rounds; r < (s + 1) * rounds; ++r) {
      blocking(comm, me, r);
      if (r % 4 == me) nonblocking(comm, me, r);
      if (r % 4 == (me + 1) % 4) collective(comm, me, r);
      if (r % 4 == (me + 2) % 4) objects(comm, me, r, persistent, box);
      if (r % 8 == me) callbacks(comm, me, r);
    }
    superstep_done();
  }
  for (int i = 0; i < 2; ++i)
    if (kept[i] != MPI_COMM_NULL) MPI_Comm_free(&kept[i]);
  MPI_Request_free(&persistent[0]);
  MPI_Request_free(&persistent[1]);
  return NULL;
}

/* The main thread takes part, too. */
static void main_part(int s) {
  for (int r = 0; r < rounds; ++r) CHECK(around(value(rank, 99, s, r), 1, MPI_COMM_WORLD) == value(left, 99, s, r));
}

int main(int argc, char** argv) {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  rounds = argc > 2 ? atoi(argv[2]) : 50;
  run_team(kThreads, work, main_part, supersteps(argc, argv));
  MPI_Finalize();
  printf("ok thread_storm\n");
  return 0;
}
