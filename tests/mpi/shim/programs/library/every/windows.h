/* One-sided communication. */
#include "fixtures.h"

static int win_errors = 0;
static void on_win_error(MPI_Win* win, int* code, ...) { (void)win, (void)code, ++win_errors; }

static void window_as_object(MPI_Win win) {
  MPI_Errhandler handler;
  MPI_Info info;
  MPI_Group all;
  MPI_Win_set_name(win, "every");
  MPI_Win_get_name(win, text, &number);
  CHECK(strcmp(text, "every") == 0);
  MPI_Win_get_info(win, &info);
  MPI_Win_set_info(win, info);
  MPI_Info_free(&info);
  MPI_Win_get_group(win, &all);
  MPI_Group_free(&all);
  CHECK(MPI_Win_f2c(MPI_Win_c2f(win)) == win);
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL);
  MPI_Win_set_attr(win, keyval, &value);
  MPI_Win_get_attr(win, keyval, &got, &flag);
  CHECK(flag && got == &value);
  MPI_Win_delete_attr(win, keyval);
  MPI_Win_free_keyval(&keyval);
  MPI_Win_create_errhandler(on_win_error, &handler);
  MPI_Win_set_errhandler(win, handler);
  MPI_Errhandler_free(&handler);
  MPI_Win_get_errhandler(win, &handler);
  MPI_Errhandler_free(&handler);
  MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
  CHECK(win_errors == 1);
  win_errors = 0;
  MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL);
}

static void one_sided(MPI_Win win, int* cells) {
  const int next = (rank + 1) % size;
  int in = 0, one = 1, zero = 0;
  MPI_Win_fence(0, win);
  cells[0] = rank, cells[1] = 0;
  MPI_Win_fence(0, win);
  MPI_Get(&in, 1, MPI_INT, next, 0, 1, MPI_INT, win);
  MPI_Put(&rank, 1, MPI_INT, next, 2, 1, MPI_INT, win);
  MPI_Accumulate(&one, 1, MPI_INT, next, 1, 1, MPI_INT, MPI_SUM, win);
  MPI_Win_fence(0, win);
  CHECK(in == next && cells[1] == 1 && cells[2] == (rank + size - 1) % size);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
  MPI_Get_accumulate(&one, 1, MPI_INT, &in, 1, MPI_INT, next, 1, 1, MPI_INT, MPI_SUM, win);
  MPI_Win_flush(next, win);
  CHECK(in == 1);
  MPI_Fetch_and_op(&one, &in, MPI_INT, next, 1, MPI_SUM, win);
  MPI_Win_flush_local(next, win);
  MPI_Compare_and_swap(&zero, &rank, &in, MPI_INT, next, 3, win);
  MPI_Win_unlock(next, win);
  MPI_Win_lock_all(0, win);
  MPI_Rput(&rank, 1, MPI_INT, next, 4, 1, MPI_INT, win, &request), finish(&request, 0);
  MPI_Rget(&in, 1, MPI_INT, next, 0, 1, MPI_INT, win, &request), finish(&request, 0);
  CHECK(in == next);
  MPI_Raccumulate(&one, 1, MPI_INT, next, 5, 1, MPI_INT, MPI_SUM, win, &request), finish(&request, 0);
  MPI_Rget_accumulate(&one, 1, MPI_INT, &in, 1, MPI_INT, next, 5, 1, MPI_INT, MPI_SUM, win, &request);
  finish(&request, 0);
  MPI_Win_flush_all(win);
  MPI_Win_flush_local_all(win);
  MPI_Win_sync(win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  /* Post and start: each rank lets its predecessor in. */
  MPI_Group all, before, after;
  const int previous = (rank + size - 1) % size;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &previous, &before);
  MPI_Group_incl(all, 1, &next, &after);
  for (int i = 0; i < 2; ++i) {
    MPI_Win_post(before, 0, win);
    MPI_Win_start(after, 0, win);
    MPI_Put(&rank, 1, MPI_INT, next, 6, 1, MPI_INT, win);
    MPI_Win_complete(win);
    if (i == 0)
      MPI_Win_wait(win);
    else
      for (flag = 0; !flag;) MPI_Win_test(win, &flag);
    CHECK(cells[6] == previous);
  }
  MPI_Group_free(&before);
  MPI_Group_free(&after);
  MPI_Group_free(&all);
}

/* A list's elements, each attached alone: more than lie on the 64 pages that Open MPI takes by default. */
static void small_pieces(MPI_Win win) {
  enum { kPieces = 2500 };
  static void* pieces[kPieces];
  for (int i = 0; i < kPieces; ++i) {
    MPI_Alloc_mem(24, MPI_INFO_NULL, &pieces[i]);
    CHECK(MPI_Win_attach(win, pieces[i], 24) == MPI_SUCCESS);
  }
  for (int i = 0; i < kPieces; ++i) {
    MPI_Win_detach(win, pieces[i]);
    MPI_Free_mem(pieces[i]);
  }
}

static void windows(void) {
  MPI_Win win;
  int *cells, unit;
  MPI_Aint bytes;
  static int memory[16];
  memset(memory, 0, sizeof memory);
  MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  window_as_object(win);
  one_sided(win, memory);
  MPI_Win_free(&win);
  MPI_Win_allocate(sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &win);
  MPI_Win_free(&win);
  MPI_Win_allocate_shared(sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &cells, &win);
  MPI_Win_shared_query(win, 0, &bytes, &unit, &cells);
  CHECK(bytes >= (MPI_Aint)sizeof memory && unit == sizeof(int));
  MPI_Win_free(&win);
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_attach(win, memory, sizeof memory);
  MPI_Win_detach(win, memory);
  small_pieces(win);
  MPI_Win_free(&win);
}
