/* Communicators of ever other orders of the ranks, made and freed. What the shim keeps of each list of ranks is gone with the epoch.
 * The test sends SIGUSR2 to rank 0, each time in another epoch: measure and make lists; measure; measure. */
#include <malloc.h>

#include "check.h"

enum { kLists = 300 };

static volatile sig_atomic_t asked = 0;
static void on_asked(int number) {
  (void)number;
  ++asked;
}

static long used(void) { return (long)mallinfo2().uordblks; }

/* The ranks in the order of the digits of `number`, in the factorial system. */
static void make_list(int number, int rank, int size) {
  int order[16];
  for (int i = 0; i < size; ++i) order[i] = i;
  for (int i = size - 1; i > 0; number /= i + 1, --i) {
    const int j = number % (i + 1), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, 0, order[rank], &comm);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  int rank, size, done = 0, s = 0;
  long before = 0, with_lists = 0, after = 0, at_end = 0;
  MPI_Init(&argc, &argv);
  signal(SIGUSR2, on_asked);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (const int n = supersteps(argc, argv); going_on(s, n); ++s) {
    int mine = (int)asked, phase = 0;
    MPI_Allreduce(&mine, &phase, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (phase > done) {
      done = phase;
      if (phase == 1) before = used();
      for (int i = 0; phase == 1 && i < kLists; ++i) make_list(i + 1, rank, size);
      *(phase == 1 ? &with_lists : phase == 2 ? &after : &at_end) = used();
    }
    edge();
  }
  MPI_Finalize();
  const long lists = with_lists - before, kept = after - before, of_an_epoch = at_end - after;
  fprintf(stderr, "%ld bytes of lists, %ld kept after an epoch that adds %ld by itself\n", lists, kept, of_an_epoch);
  if (done != 3 || lists < 100L * kLists || kept - of_an_epoch > lists / 2) return 4;
  printf("ok passing lists\n");
  return 0;
}
