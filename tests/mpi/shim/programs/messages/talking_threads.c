/* MPI_THREAD_MULTIPLE: threads that talk without end, each in a ring of all ranks of its own and by other calls, in step with nobody; and
 * a service that waits all the time for requests from anywhere. */
#include <pthread.h>

#include "check.h"

enum { kLarge = 50000 };
enum Way { kPlain, kProbed, kLargeOnes, kMatched, kWaitAny, kExchanged, kWays };

static MPI_Comm rings[kWays];
static int rank, size, left, right;
static volatile int working = 1;

static int receive(enum Way way, int* in) {
  const MPI_Comm ring = rings[way];
  MPI_Status status;
  MPI_Message message;
  MPI_Request request = MPI_REQUEST_NULL;
  int one = -1;
  switch (way) {
    case kProbed:
      MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, ring, &status);
      CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 1);
      MPI_Recv(in, 1, MPI_INT, left, 1, ring, &status);
      break;
    case kLargeOnes:
      MPI_Irecv(in, kLarge, MPI_INT, left, 1, ring, &request);
      MPI_Wait(&request, &status);
      CHECK(in[0] == in[kLarge - 1] && request == MPI_REQUEST_NULL);
      break;
    case kMatched:
      MPI_Mprobe(MPI_ANY_SOURCE, 1, ring, &message, &status);
      MPI_Mrecv(in, 1, MPI_INT, &message, &status);
      break;
    case kWaitAny:
      MPI_Irecv(in, 1, MPI_INT, left, 1, ring, &request);
      MPI_Waitany(1, &request, &one, &status);
      CHECK(one == 0);
      break;
    default:
      MPI_Recv(in, 1, MPI_INT, left, 1, ring, &status);
  }
  CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 1);
  return in[0];
}

static void send(enum Way way, int word, int* out) {
  const MPI_Comm ring = rings[way];
  MPI_Request request;
  MPI_Status status;
  out[0] = out[kLarge - 1] = word;
  switch (way) {
    case kLargeOnes:
      MPI_Send(out, kLarge, MPI_INT, right, 1, ring);
      break;
    case kMatched:
      MPI_Ssend(out, 1, MPI_INT, right, 1, ring);
      break;
    case kWaitAny:
      MPI_Isend(out, 1, MPI_INT, right, 1, ring, &request);
      MPI_Waitall(1, &request, &status);
      break;
    default:
      MPI_Send(out, 1, MPI_INT, right, 1, ring);
  }
}

/* All at once. A word is the round after which its sender ends, as rank 0 has set it a whole way around before; 0: not yet. */
static void exchange(int* out, int* in) {
  int last = 0;
  for (int round = 1; last == 0 || round <= last; ++round) {
    if (rank == 0 && last == 0 && !working) last = round + size;
    MPI_Status status;
    out[0] = last, out[1] = out[kLarge - 1] = round;
    MPI_Sendrecv(out, kLarge, MPI_INT, right, 1, in, kLarge, MPI_INT, left, 1, rings[kExchanged], &status);
    CHECK(in[1] == round && in[kLarge - 1] == round && status.MPI_SOURCE == left);
    if (rank != 0) last = in[0];
  }
}

/* Rank 0 counts the rounds of a word; -1 ends it. */
static void* talk(void* argument) {
  const enum Way way = (enum Way)(long)argument;
  int* const out = malloc(2 * kLarge * sizeof *out);
  int* const in = out + kLarge;
  memset(out, 0, 2 * kLarge * sizeof *out);
  if (way == kExchanged) {
    exchange(out, in);
  } else if (rank == 0) {
    for (int word = 0; word != -1;) {
      word = working ? word + 1 : -1;
      send(way, word, out);
      CHECK(receive(way, in) == word);
    }
  } else {
    for (int word = 0, before = 0; word != -1; before = word) {
      word = receive(way, in);
      CHECK(word == before + 1 || word == -1);
      send(way, word, out);
    }
  }
  free(out);
  return NULL;
}

/* Returns the number of requests. */
static void* serve(void* argument) {
  long* const served = argument;
  for (int word = 0;; ++*served) {
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (word == -1) return NULL;
  }
}

int main(int argc, char** argv) {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size, right = (rank + 1) % size;
  pthread_t threads[kWays], service;
  long served = 0, s = 0;
  pthread_create(&service, NULL, serve, &served);
  for (long way = 0; way < kWays; ++way) {
    MPI_Comm_dup(MPI_COMM_WORLD, &rings[way]);
    pthread_create(&threads[way], NULL, talk, (void*)way);
  }
  for (const int n = supersteps(argc, argv); going_on((int)s, n); ++s) {
    const int word = (int)s;
    MPI_Send(&word, 1, MPI_INT, right, 9, MPI_COMM_WORLD);
    edge();
  }
  working = 0;
  for (int way = 0; way < kWays; ++way) pthread_join(threads[way], NULL);
  const int end = -1;
  MPI_Barrier(MPI_COMM_WORLD); /* all requests have been sent */
  MPI_Send(&end, 1, MPI_INT, right, 9, MPI_COMM_WORLD);
  pthread_join(service, NULL);
  CHECK(served == s);
  MPI_Finalize();
  printf("ok talking threads %ld\n", s);
  return 0;
}
