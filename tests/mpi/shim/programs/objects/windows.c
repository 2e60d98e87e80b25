/* Windows of every kind, carried across epochs between accesses and in the middle of them. */
#include "check.h"

enum { kCells = 64, kPieces = 3, kLarge = 100000 };

static int rank, size, left, right;

/* --- What belongs to a window besides its memory ---------------------------------------------------------- */

static int key = MPI_KEYVAL_INVALID, removed = 0, errors = 0;
static MPI_Win removed_from = MPI_WIN_NULL, erroneous = MPI_WIN_NULL;

static int on_remove(MPI_Win window, int keyval, void* value, void* extra) {
  CHECK(keyval == key && value == &removed && extra == &errors);
  removed_from = window;
  ++removed;
  return MPI_SUCCESS;
}

static void on_error(MPI_Win* window, int* code, ...) {
  int class = -1;
  MPI_Error_class(*code, &class);
  CHECK(class == MPI_ERR_RANK);
  erroneous = *window;
  ++errors;
}

/* The predefined attributes, to which the program may keep pointers. */
typedef struct {
  void* base;
  MPI_Aint* bytes;
  int *unit, *flavor, *model;
} Attributes;

static Attributes attributes(MPI_Win window) {
  Attributes a;
  int flags[5];
  MPI_Win_get_attr(window, MPI_WIN_BASE, &a.base, &flags[0]);
  MPI_Win_get_attr(window, MPI_WIN_SIZE, &a.bytes, &flags[1]);
  MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, &a.unit, &flags[2]);
  MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &a.flavor, &flags[3]);
  MPI_Win_get_attr(window, MPI_WIN_MODEL, &a.model, &flags[4]);
  for (int i = 0; i < 5; ++i) CHECK(flags[i]);
  CHECK(*a.model == MPI_WIN_UNIFIED || *a.model == MPI_WIN_SEPARATE);
  return a;
}

static void has(MPI_Win window, Attributes before, void* base, MPI_Aint bytes, int unit, int flavor) {
  const Attributes now = attributes(window);
  CHECK(now.base == base && *now.bytes == bytes && *now.unit == unit && *now.flavor == flavor);
  CHECK(now.base == before.base && now.bytes == before.bytes && now.unit == before.unit);
  CHECK(now.flavor == before.flavor && now.model == before.model);
}

static void dress(MPI_Win window) {
  MPI_Errhandler handler;
  MPI_Win_set_name(window, "dressed");
  MPI_Win_set_attr(window, key, &removed);
  MPI_Win_create_errhandler(on_error, &handler);
  MPI_Win_set_errhandler(window, handler);
  MPI_Errhandler_free(&handler);
}

static void is_dressed(MPI_Win window, MPI_Fint number) {
  char name[MPI_MAX_OBJECT_NAME], hint[32] = "";
  int length = -1, flag = 0, in = 0;
  void* value = NULL;
  MPI_Info info;
  MPI_Group group, all;
  MPI_Win_get_name(window, name, &length);
  CHECK(!strcmp(name, "dressed"));
  MPI_Win_get_attr(window, key, &value, &flag);
  CHECK(flag && value == &removed && removed == 0);
  MPI_Win_get_info(window, &info);
  MPI_Info_get(info, "no_locks", sizeof hint - 1, hint, &flag);
  MPI_Info_free(&info);
  CHECK(flag && !strcmp(hint, "true"));
  MPI_Win_get_group(window, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_compare(group, all, &flag);
  CHECK(flag == MPI_IDENT);
  MPI_Group_free(&group);
  MPI_Group_free(&all);
  CHECK(MPI_Win_c2f(window) == number && MPI_Win_f2c(number) == window);
  const int before = errors;
  CHECK(MPI_Get(&in, 1, MPI_INT, size + 3, 0, 1, MPI_INT, window) != MPI_SUCCESS);
  CHECK(errors == before + 1 && erroneous == window);
}

/* --- Accesses ----------------------------------------------------------------------------------------------- */

/* Fences: what is put before an edge has arrived after the fence behind it; the epoch goes on after the edge. */
static void fences(MPI_Win window, int* cells, int s) {
  int out[2] = {rank + s, rank * s}, in = -1;
  const int one = 1;
  MPI_Put(&out[0], 1, MPI_INT, right, 0, 1, MPI_INT, window);
  MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, window);
  edge();
  MPI_Put(&out[1], 1, MPI_INT, right, 2, 1, MPI_INT, window);
  MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(s % 2 ? MPI_MODE_NOSUCCEED : 0, window);
  CHECK(cells[0] == left + s && cells[2] == left * s);
  if (rank == 0) CHECK(cells[1] == 2 * size * (s + 1));
  edge();
  if (s % 2) MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
  MPI_Get(&in, 1, MPI_INT, right, 2, 1, MPI_INT, window);
  edge();
  MPI_Win_fence(0, window);
  CHECK(in == rank * s);
}

/* lock_all for the whole of the program's life; requests and flushes on both sides of an edge. */
static void passive(MPI_Win window, int s) {
  const int one = 1;
  const double half = 0.5;
  int before = -1, cell = rank * 10 + s, in = -1;
  double sum = -1;
  MPI_Request request;
  MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, window);
  MPI_Win_flush(0, window);
  CHECK(before >= s && before < (s + 1) * size);
  MPI_Rput(&cell, 1, MPI_INT, right, 2, 1, MPI_INT, window, &request);
  MPI_Accumulate(&half, 1, MPI_DOUBLE, 0, 4, 1, MPI_DOUBLE, MPI_SUM, window);
  edge();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_flush_all(window);
  MPI_Get(&in, 1, MPI_INT, right, 2, 1, MPI_INT, window);
  MPI_Win_flush(right, window);
  CHECK(in == cell);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Get(&sum, 1, MPI_DOUBLE, 0, 4, 1, MPI_DOUBLE, window);
  MPI_Win_flush_local_all(window);
  CHECK(sum == 0.5 * size * (s + 1));
  MPI_Barrier(MPI_COMM_WORLD);
}

/* An exclusive lock held at an edge: nobody else gets it meanwhile, so no addition is lost. */
static void exclusive(MPI_Win window, int s) {
  int sum = -1;
  if (s % size == rank) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
  edge();
  if (s % size != rank) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
  MPI_Get(&sum, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
  MPI_Win_flush(0, window);
  ++sum;
  MPI_Put(&sum, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
  MPI_Win_unlock(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  /* Locks of several targets, and one without a check. */
  MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, window);
  if (right != 0) MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
  edge();
  sum = -1;
  MPI_Get(&sum, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
  if (right != 0) MPI_Win_unlock(right, window);
  MPI_Win_unlock(0, window);
  CHECK(sum == (s + 1) * size);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Post and start, both ended before the edge. */
static void post_start(MPI_Win window, int* cells, int s) {
  MPI_Group all, before, after;
  int out = rank * 7 + s;
  MPI_Win_get_group(window, &all);
  MPI_Group_incl(all, 1, &left, &before);
  MPI_Group_incl(all, 1, &right, &after);
  MPI_Win_post(before, 0, window);
  MPI_Win_start(after, 0, window);
  MPI_Put(&out, 1, MPI_INT, right, 8, 1, MPI_INT, window);
  MPI_Win_complete(window);
  if (s % 2)
    MPI_Win_wait(window);
  else
    for (int done = 0; !done;) MPI_Win_test(window, &done);
  CHECK(cells[8] == left * 7 + s);
  MPI_Group_free(&before);
  MPI_Group_free(&after);
  MPI_Group_free(&all);
}

/* A dynamic window: pieces attached once, and in each superstep; remote ranks know their addresses. */
static void dynamic(MPI_Win window, int* pieces, const MPI_Aint* lasting, int s) {
  int* fresh = malloc(sizeof *fresh);
  int out = rank + 100 * s, in = -1;
  MPI_Aint mine, theirs;
  *fresh = 1000 * rank + s;
  MPI_Win_attach(window, fresh, sizeof *fresh);
  MPI_Get_address(fresh, &mine);
  MPI_Sendrecv(&mine, 1, MPI_AINT, left, 0, &theirs, 1, MPI_AINT, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  edge();
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
  MPI_Get(&in, 1, MPI_INT, right, theirs, 1, MPI_INT, window);
  MPI_Put(&out, 1, MPI_INT, right, MPI_Aint_add(lasting[right], (MPI_Aint)((size_t)(s % kPieces) * sizeof out)), 1,
          MPI_INT, window);
  MPI_Win_unlock(right, window);
  CHECK(in == 1000 * right + s);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(pieces[s % kPieces] == left + 100 * s);
  MPI_Win_detach(window, fresh);
  free(fresh);
  edge();
}

/* More than fits in one message of MPI's, also of a length that isn't a multiple of one. */
static void large(MPI_Win window, int* cells, int s) {
  static int out[kLarge], in[kLarge];
  const int lengths[] = {kLarge, kLarge - 12345};
  for (int i = 0; i < kLarge; ++i) out[i] = 1000003 * rank + 17 * i + s;
  for (int l = 0; l < 2; ++l) {
    const int length = lengths[l];
    MPI_Win_lock(MPI_LOCK_SHARED, right, l == 0 ? 0 : MPI_MODE_NOCHECK, window);
    MPI_Put(out, length, MPI_INT, right, 0, length, MPI_INT, window);
    MPI_Win_unlock(right, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    for (int i = 0; i < length; ++i) CHECK(cells[i] == 1000003 * left + 17 * i + s);
    MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, window);
    MPI_Accumulate(out, length, MPI_INT, right, 0, length, MPI_INT, MPI_BXOR, window);
    MPI_Get(in, length, MPI_INT, right, 0, length, MPI_INT, window);
    MPI_Win_unlock(right, window);
    edge();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, window);
    MPI_Get(in, length, MPI_INT, right, 0, length, MPI_INT, window);
    MPI_Win_unlock(right, window);
    for (int i = 0; i < length; ++i) CHECK(in[i] == 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void errors_of_mpi(void) {
  MPI_Win none = MPI_WIN_NULL;
  int class = -1, flag = -1;
  void* value = NULL;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Win_free(&none), &class);
  CHECK(class == MPI_ERR_WIN);
  MPI_Error_class(MPI_Win_fence(0, none), &class);
  CHECK(class == MPI_ERR_WIN);
  MPI_Error_class(MPI_Win_get_attr(none, MPI_WIN_BASE, &value, &flag), &class);
  CHECK(class == MPI_ERR_WIN);
  MPI_Error_class(MPI_Win_create(NULL, -1, 1, MPI_INFO_NULL, MPI_COMM_SELF, &none), &class);
  CHECK(class == MPI_ERR_SIZE);
  MPI_Error_class(MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_SELF, &value, &none), &class);
  CHECK(class == MPI_ERR_SIZE);
  MPI_Error_class(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_NULL, &none), &class);
  CHECK(class == MPI_ERR_COMM);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* The memory of a new window is zero, as in Open MPI without the shim, whatever the heap held before. */
static void fresh_memory(void) {
  enum { kBlocks = 64, kBlock = 1000 };
  void* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) memset(blocks[i] = malloc(kBlock), 0xab, kBlock);
  void* const last = malloc(1);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  char* memory;
  MPI_Win window;
  MPI_Win_allocate(kBlocks * kBlock / 2, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  for (int i = 0; i < kBlocks * kBlock / 2; ++i) CHECK(memory[i] == 0);
  MPI_Win_free(&window);
  free(last);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size, right = (rank + 1) % size;

  int memory[kCells] = {0}, *own, *locked, *counted, *alone, *nothing, *long_cells;
  MPI_Win fenced, allocated, created, moving, part, shared, empty, long_window;
  MPI_Info hints;
  MPI_Comm half, other;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_remove, &key, &errors);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "no_locks", "true");
  MPI_Win_create(memory, sizeof memory, sizeof *memory, hints, MPI_COMM_WORLD, &fenced);
  MPI_Info_free(&hints);
  dress(fenced);
  MPI_Win_allocate(kCells * sizeof *own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &allocated);
  MPI_Win_allocate(sizeof *locked, sizeof *locked, MPI_INFO_NULL, MPI_COMM_WORLD, &locked, &created);
  MPI_Win_allocate(kLarge * sizeof *long_cells, sizeof *long_cells, MPI_INFO_NULL, MPI_COMM_WORLD, &long_cells,
                   &long_window);
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &moving);
  /* Created by each half in turn, on a communicator that doesn't last. */
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_dup(half, &other);
  MPI_Comm_free(&half);
  MPI_Win_allocate(kCells, 1, MPI_INFO_NULL, other, &counted, &part);
  MPI_Comm_free(&other);
  MPI_Win_allocate_shared(kCells, 4, MPI_INFO_NULL, MPI_COMM_SELF, &alone, &shared);
  MPI_Win_allocate_shared(0, 4, MPI_INFO_NULL, MPI_COMM_SELF, &nothing, &empty);
  memset(own, 0, kCells * sizeof *own);
  memset(counted, 0, kCells);
  *alone = 77;
  *locked = 0;
  int pieces[kPieces] = {0};
  MPI_Aint here, lasting[64];
  MPI_Win_attach(moving, pieces, sizeof pieces);
  MPI_Get_address(pieces, &here);
  MPI_Allgather(&here, 1, MPI_AINT, lasting, 1, MPI_AINT, MPI_COMM_WORLD);
  const Attributes of_created = attributes(fenced), of_allocated = attributes(allocated),
                   of_dynamic = attributes(moving);
  const MPI_Fint number = MPI_Win_c2f(fenced);

  MPI_Win_fence(MPI_MODE_NOPRECEDE, fenced);
  MPI_Win_lock_all(0, allocated);
  int s = 0;
  for (; going_on(s, n); ++s) {
    fences(fenced, memory, s);
    passive(allocated, s);
    exclusive(created, s);
    dynamic(moving, pieces, lasting, s);
    if (s % 3 == 1) large(long_window, long_cells, s);
    if (s % 3 == 0) errors_of_mpi();
    fresh_memory();
    is_dressed(fenced, number);
    has(fenced, of_created, memory, sizeof memory, sizeof *memory, MPI_WIN_FLAVOR_CREATE);
    has(allocated, of_allocated, own, kCells * sizeof *own, sizeof *own, MPI_WIN_FLAVOR_ALLOCATE);
    CHECK(attributes(moving).base == MPI_BOTTOM && *attributes(moving).bytes == 0);
    CHECK(*attributes(moving).flavor == MPI_WIN_FLAVOR_DYNAMIC && attributes(moving).unit == of_dynamic.unit);
    CHECK(*attributes(shared).flavor == MPI_WIN_FLAVOR_SHARED);
    MPI_Aint bytes = -1;
    int unit = -1, *found = NULL;
    MPI_Win_shared_query(shared, MPI_PROC_NULL, &bytes, &unit, &found);
    CHECK(bytes == kCells && unit == 4 && found == alone && *alone == 77);
    MPI_Win_shared_query(empty, 0, &bytes, &unit, &found);
    CHECK(bytes == 0 && unit == 4);

    /* The reverse order of ranks, within a half. */
    int of_half = -1, mine = -1;
    MPI_Group group, world;
    MPI_Win_get_group(part, &group);
    MPI_Group_size(group, &of_half);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_rank(group, &mine);
    CHECK(mine == of_half - 1 - rank / 2);
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    const int one = 1;
    MPI_Win_lock(MPI_LOCK_SHARED, of_half - 1, 0, part);
    MPI_Accumulate(&one, 1, MPI_INT, of_half - 1, 8, 1, MPI_INT, MPI_SUM, part);
    MPI_Win_unlock(of_half - 1, part);
    edge();
    if (mine == of_half - 1) {
      MPI_Win_lock(MPI_LOCK_SHARED, mine, 0, part);
      CHECK(counted[2] == of_half * (s + 1));
      MPI_Win_unlock(mine, part);
    }

    /* A window that lives for one superstep. */
    int inbox[16] = {0};
    MPI_Win brief;
    MPI_Win_create(inbox, sizeof inbox, sizeof *inbox, MPI_INFO_NULL, MPI_COMM_WORLD, &brief);
    post_start(brief, inbox, s);
    edge();
    MPI_Win_free(&brief);
    CHECK(brief == MPI_WIN_NULL);
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, fenced);
  MPI_Win_unlock_all(allocated);
  CHECK(removed == 0);
  MPI_Win before = fenced;
  MPI_Win_free(&fenced);
  CHECK(removed == 1 && removed_from == before);
  MPI_Win_free(&allocated);
  MPI_Win_free(&created);
  MPI_Win_free(&long_window);
  MPI_Win_detach(moving, pieces);
  MPI_Win_free(&moving);
  MPI_Win_free(&part);
  MPI_Win_free(&shared);
  MPI_Win_free(&empty);
  MPI_Win_free_keyval(&key);
  CHECK(key == MPI_KEYVAL_INVALID);
  MPI_Finalize();
  printf("ok windows %d\n", s);
  return 0;
}
