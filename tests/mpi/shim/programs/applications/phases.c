/* A program with phases: one-sided (windows of all kinds), then files (collective, with views), then neither. It can
 * move only in the last; it repeats until SUPERSTEPS are done. */
#include "check.h"

enum { kPhase = 12 };

/* A key of window attributes, for the windows of every phase. */
static int key = MPI_KEYVAL_INVALID, key_seen = MPI_KEYVAL_INVALID, removed = 0;
static int on_remove(MPI_Win window, int keyval, void* value, void* extra) {
  (void)window, (void)value;
  key_seen = keyval;
  ++*(int*)extra;
  return MPI_SUCCESS;
}

static void attribute(MPI_Win window) {
  static int value = 7;
  void* found = NULL;
  int flag = -1, before = removed;
  MPI_Win_get_attr(window, key, &found, &flag);
  CHECK(flag == 0);
  MPI_Win_set_attr(window, key, &value);
  MPI_Win_get_attr(window, key, &found, &flag);
  CHECK(flag && found == &value);
  MPI_Win_delete_attr(window, key);
  CHECK(removed == before + 1 && key_seen == key);
  MPI_Win_set_attr(window, key, &value);
}

static void one_sided(MPI_Comm comm, int rank, int size) {
  int *counter, memory[4] = {0, 0, 0, 0};
  MPI_Win window, created, dynamic;
  MPI_Win_allocate(4 * sizeof *counter, sizeof *counter, MPI_INFO_NULL, comm, &counter, &window);
  MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, comm, &created);
  MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &dynamic);
  attribute(created);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
  memset(counter, 0, 4 * sizeof *counter);
  MPI_Win_unlock(rank, window);
  MPI_Barrier(comm);
  const int one = 1;
  for (int s = 0; s < kPhase; ++s) {
    int before = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window); /* a counter on rank 0 */
    MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 1, MPI_SUM, window);
    MPI_Win_unlock(0, window);
    CHECK(before >= s && before < (s + 1) * size);
    MPI_Win_fence(0, created);
    int value = rank * 100 + s;
    MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 2, 1, MPI_INT, created);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 3, 1, MPI_INT, MPI_SUM, created);
    MPI_Win_fence(0, created);
    CHECK(memory[2] == (rank + size - 1) % size * 100 + s && (rank != 0 || memory[3] == (s + 1) * size));
    edge();
  }
  int total = -1;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  MPI_Get(&total, 1, MPI_INT, 0, 1, 1, MPI_INT, window);
  MPI_Win_unlock(0, window);
  CHECK(total == kPhase * size);
  MPI_Win_free(&window);
  const int before = removed;
  MPI_Win_free(&created);
  CHECK(removed == before + 1);
  MPI_Win_free(&dynamic);
}

static void files(const char* path, MPI_Comm comm, int rank, int size) {
  MPI_File file;
  MPI_Datatype every, here;
  MPI_Offset length = -1;
  if (rank == 0) remove(path);
  MPI_Barrier(comm);
  CHECK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file) ==
        MPI_SUCCESS);
  MPI_Type_vector(kPhase, 1, size, MPI_INT, &every); /* every size-th int belongs to this rank */
  MPI_Type_commit(&every);
  MPI_File_set_view(file, (MPI_Offset)(rank * (int)sizeof(int)), MPI_INT, every, "native", MPI_INFO_NULL);
  MPI_Type_free(&every);
  MPI_Offset at = -1;
  char how[MPI_MAX_DATAREP_STRING];
  MPI_File_get_view(file, &at, &here, &every, how);
  CHECK(at == rank * (int)sizeof(int) && here == MPI_INT && !strcmp(how, "native"));
  MPI_Type_free(&every);
  for (int s = 0; s < kPhase; ++s) {
    int out = rank * 1000 + s, in = -1;
    MPI_File_write_at_all(file, s, &out, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Request request;
    MPI_File_iread_at(file, s, &in, 1, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in == out);
    edge();
  }
  MPI_File_get_size(file, &length);
  CHECK(length == (MPI_Offset)((size_t)(kPhase * size) * sizeof(int)));
  MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  int all[64];
  MPI_File_read_at_all(file, 0, all, size, MPI_INT, MPI_STATUS_IGNORE);
  for (int r = 0; r < size; ++r) CHECK(all[r] == r * 1000);
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  char path[64];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int id = (int)getpid();
  MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
  snprintf(path, sizeof path, "/tmp/bsp-shim-phases-%d", id);
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_remove, &key, &removed);
  for (int s = 0; going_on(s, n); s += 3 * kPhase) {
    one_sided(MPI_COMM_WORLD, rank, size);
    for (int i = 0; i < kPhase; ++i) edge();
    files(path, MPI_COMM_WORLD, rank, size);
    for (int i = 0; i < kPhase; ++i) edge();
  }
  MPI_Win_free_keyval(&key);
  CHECK(key == MPI_KEYVAL_INVALID);
  MPI_Finalize();
  printf("ok phases\n");
  return 0;
}
