/* Generalised requests that the program frees: MPI calls the function that frees their state once the program has done
 * both that and MPI_Grequest_complete, in either order. */
#include <pthread.h>

#include "check.h"

static int freed = 0;

static int query(void* state, MPI_Status* status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_INT, 3);
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}
static int free_state(void* state) {
  ++freed;
  *(int*)state = 0;
  return MPI_SUCCESS;
}
static int cancel(void* state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}

static void* complete_later(void* request) {
  usleep(500);
  MPI_Grequest_complete(*(MPI_Request*)request);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = -1, n = supersteps(argc, argv);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  for (int s = 0; going_on(s, n); ++s) {
    int states[4] = {1, 1, 1, 1}, count = -1;
    MPI_Request request, copy;
    MPI_Status status;
    freed = 0;
    MPI_Grequest_start(query, free_state, cancel, &states[0], &request);
    copy = request;
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL && freed == 0);
    MPI_Grequest_complete(copy);
    CHECK(freed == 1 && states[0] == 0);

    MPI_Grequest_start(query, free_state, cancel, &states[1], &request);
    MPI_Grequest_complete(request);
    CHECK(freed == 1);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL && freed == 2 && states[1] == 0);

    MPI_Grequest_start(query, free_state, cancel, &states[2], &request);
    MPI_Grequest_complete(request);
    edge();
    if (s % 2 == 0) {
      MPI_Wait(&request, &status);
      MPI_Get_count(&status, MPI_INT, &count);
      CHECK(count == 3);
    } else {
      MPI_Request_free(&request);
    }
    CHECK(request == MPI_REQUEST_NULL && freed == 3 && states[2] == 0);

    for (int i = 0; i < 3; ++i) { /* another thread completes what this one frees or waits for */
      pthread_t thread;
      states[3] = 1;
      MPI_Grequest_start(query, free_state, cancel, &states[3], &request);
      copy = request;
      pthread_create(&thread, NULL, complete_later, &copy);
      if (i == 1) usleep(500);
      if (i == 2)
        MPI_Wait(&request, &status);
      else
        MPI_Request_free(&request);
      pthread_join(thread, NULL);
      CHECK(freed == 4 + i && states[3] == 0);
    }
  }
  MPI_Finalize();
  printf("ok generalised\n");
  return 0;
}
