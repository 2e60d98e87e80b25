/* shared_memory SUPERSTEPS THING: in each superstep the ranks that MPI_Comm_split_type says share memory do so. What THING names is kept
 * from the start, too, and promises the same to the end, or until rank 0 gets SIGUSR2:
 *   nothing, comm (of MPI_COMM_TYPE_SHARED), derived (from it), window (there was one on MPI_COMM_WORLD)
 * Prints "ok shared_memory" and the sizes of the former that this rank has seen, in order. */
#include "check.h"

enum { kBytes = 1000 };
static int rank;

/* Each of the ranks writes; each reads what the next one has written. */
static void share(MPI_Comm comm, int s) {
  int mine, size, unit;
  MPI_Aint bytes;
  unsigned char *own, *next;
  MPI_Win window;
  MPI_Comm_rank(comm, &mine);
  MPI_Comm_size(comm, &size);
  CHECK(MPI_Win_allocate_shared(kBytes, 1, MPI_INFO_NULL, comm, &own, &window) == MPI_SUCCESS);
  memset(own, (s + mine) % 251, kBytes);
  MPI_Win_fence(0, window);
  CHECK(MPI_Win_shared_query(window, (mine + 1) % size, &bytes, &unit, &next) == MPI_SUCCESS && bytes == kBytes);
  CHECK(next[0] == (s + (mine + 1) % size) % 251 && next[kBytes - 1] == next[0]);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

static MPI_Comm keep(const char* thing) {
  MPI_Comm shared, one, kept;
  MPI_Group group;
  if (!strcmp(thing, "nothing")) return MPI_COMM_NULL;
  if (!strcmp(thing, "window")) {
    share(MPI_COMM_WORLD, 0);
    return MPI_COMM_NULL;
  }
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &shared);
  if (!strcmp(thing, "comm")) return shared;
  /* A subset, in another order, of a copy */
  CHECK(!strcmp(thing, "derived"));
  MPI_Comm_dup(shared, &one);
  MPI_Comm_free(&shared);
  MPI_Comm_group(one, &group);
  MPI_Comm_create_group(one, group, 7, &shared);
  MPI_Comm_split(shared, 0, -rank, &kept);
  MPI_Comm_free(&shared);
  MPI_Comm_free(&one);
  MPI_Group_free(&group);
  return kept;
}

static volatile sig_atomic_t freed = 0;
static void on_free(int number) { freed = number; }

int main(int argc, char** argv) {
  char sizes[200] = "";
  int n = supersteps(argc, argv), last = 0;
  signal(SIGUSR2, on_free);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm kept = keep(argc > 2 ? argv[2] : "nothing");
  for (int s = 0; going_on(s, n); ++s) {
    int size, enough = freed;
    MPI_Comm fresh;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &fresh);
    MPI_Comm_size(fresh, &size);
    share(fresh, s);
    MPI_Comm_free(&fresh);
    if (size != last) snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), " %d", size);
    last = size;
    MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (kept != MPI_COMM_NULL && enough) MPI_Comm_free(&kept);
    if (kept != MPI_COMM_NULL) share(kept, s);
    edge();
  }
  if (kept != MPI_COMM_NULL) MPI_Comm_free(&kept);
  MPI_Finalize();
  printf("ok shared_memory%s\n", sizes);
  return 0;
}
