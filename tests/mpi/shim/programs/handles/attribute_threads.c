/* A user callback for an attribute waits for another thread, which uses attributes too. */
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

static int rank;
static MPI_Comm comm;
static int key, other_key, plain = 5;
static sem_t called;

/* Continues when the other thread has sent. */
static void wait_for_the_other(void) {
  int word = -1;
  sem_post(&called);
  MPI_Recv(&word, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(word == 5);
}

static int copy_it(MPI_Comm from, int which, void* extra, void* in, void* out, int* flag) {
  (void)from, (void)which, (void)extra;
  wait_for_the_other();
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static int delete_it(MPI_Comm from, int which, void* value, void* extra) {
  (void)from, (void)which, (void)value, (void)extra;
  wait_for_the_other();
  return MPI_SUCCESS;
}

/* Uses attributes while the callback runs, then lets it continue. */
static void* other(void* unused) {
  for (;;) {
    int *got = NULL, flag = 0, made = -1;
    sem_wait(&called);
    MPI_Comm_get_attr(comm, other_key, &got, &flag);
    CHECK(flag);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &made, NULL);
    MPI_Comm_set_attr(comm, made, &plain);
    MPI_Comm_delete_attr(comm, made);
    MPI_Comm_free_keyval(&made);
    MPI_Send(got, 1, MPI_INT, rank, 7, MPI_COMM_WORLD);
  }
  return unused;
}

int main(int argc, char** argv) {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  sem_init(&called, 0, 0);
  MPI_Comm_create_keyval(copy_it, delete_it, &key, NULL);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other_key, NULL);
  MPI_Comm_set_attr(comm, other_key, &plain);
  MPI_Comm_set_attr(comm, key, &plain);
  pthread_t thread;
  pthread_create(&thread, NULL, other, NULL);
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    MPI_Comm copy;
    MPI_Comm_dup(comm, &copy);            /* the copy callback */
    MPI_Comm_free(&copy);                 /* the delete callback */
    MPI_Comm_set_attr(comm, key, &plain); /* and again, for the old value */
    edge();
  }
  MPI_Finalize();
  printf("ok attribute_threads\n");
  fflush(stdout);
  _exit(0); /* the other thread waits */
}
