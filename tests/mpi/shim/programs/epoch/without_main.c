/* The main thread ends, another one uses MPI. */
#include <pthread.h>

#include "check.h"

static int n;

static void* work(void* main_thread) {
  int provided = -1;
  pthread_join(*(pthread_t*)main_thread, NULL);
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  for (int s = 0; going_on(s, n); ++s) edge();
  MPI_Finalize();
  printf("ok without_main\n");
  exit(0);
}

int main(int argc, char** argv) {
  static pthread_t main_thread, other;
  n = supersteps(argc, argv);
  main_thread = pthread_self();
  pthread_create(&other, NULL, work, &main_thread);
  pthread_exit(NULL);
}
