/* Windows, files and threads of random_objects. */
#include <pthread.h>

#include "random_objects.h"

/* --- Windows ------------------------------------------------------------------------------------------------------- */

enum { kWords = 8 };
enum Synchronised { kFence, kLockAll, kExclusive, kUnlocked, kSynchronised };

typedef struct {
  enum Synchronised by;
  int flavor, *memory, own[kWords], turn, is_held;
  MPI_Aint at[64]; /* in a dynamic window, of each rank */
  MPI_Win window;
} Window;

static void* make_window(int id) {
  (void)id;
  Window* w = zeroed(sizeof *w);
  w->by = (enum Synchronised)draw(kSynchronised);
  w->flavor = draw(3);
  w->memory = w->own;
  if (w->flavor == 0) {
    MPI_Win_create(w->own, sizeof w->own, sizeof(int), MPI_INFO_NULL, base, &w->window);
  } else if (w->flavor == 1) {
    MPI_Win_allocate(sizeof w->own, sizeof(int), MPI_INFO_NULL, draw(2) ? base : MPI_COMM_WORLD, &w->memory,
                     &w->window);
    memset(w->memory, 0, sizeof w->own);
  } else {
    MPI_Aint here;
    MPI_Win_create_dynamic(MPI_INFO_NULL, base, &w->window);
    MPI_Win_attach(w->window, w->own, sizeof w->own);
    MPI_Get_address(w->own, &here);
    MPI_Allgather(&here, 1, MPI_AINT, w->at, 1, MPI_AINT, base);
  }
  MPI_Barrier(base);
  if (w->by == kFence) MPI_Win_fence(MPI_MODE_NOPRECEDE, w->window);
  if (w->by == kLockAll) MPI_Win_lock_all(0, w->window);
  return w;
}

static MPI_Aint place_of(const Window* w, int of_rank, int word) {
  return w->flavor == 2 ? w->at[of_rank] + (MPI_Aint)sizeof(int) * word : word;
}

/* The lock that this rank has held since the last turn. */
static void unlock_window(Window* w) {
  if (w->is_held) MPI_Win_unlock(0, w->window);
  w->is_held = 0;
}

static void use_window(void* data, int id, int s) {
  (void)id, (void)s;
  Window* w = data;
  const int to = right_of(1), from = left_of(1), one = 1, value = 100 * ++w->turn + rank;
  int sum = -1;
  unlock_window(w);
  MPI_Barrier(base);
  if (w->by == kExclusive || w->by == kUnlocked) MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w->window);
  MPI_Put(&value, 1, MPI_INT, to, place_of(w, to, 0), 1, MPI_INT, w->window);
  if (w->by == kExclusive || w->by == kUnlocked) MPI_Win_unlock(to, w->window);
  if (w->by == kFence) MPI_Win_fence(0, w->window);
  if (w->by == kLockAll) MPI_Win_flush(to, w->window);
  MPI_Barrier(base);
  if (w->by == kLockAll) MPI_Win_sync(w->window);
  CHECK(w->memory[0] == 100 * w->turn + from);
  MPI_Barrier(base);
  if (w->by == kExclusive || w->by == kUnlocked) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->window);
  MPI_Accumulate(&one, 1, MPI_INT, 0, place_of(w, 0, 1), 1, MPI_INT, MPI_SUM, w->window);
  if (w->by == kExclusive || w->by == kUnlocked) MPI_Win_unlock(0, w->window);
  if (w->by == kFence) MPI_Win_fence(0, w->window);
  if (w->by == kLockAll) MPI_Win_flush_all(w->window);
  MPI_Barrier(base);
  if (w->by == kExclusive || w->by == kUnlocked) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->window);
  MPI_Get(&sum, 1, MPI_INT, 0, place_of(w, 0, 1), 1, MPI_INT, w->window);
  if (w->by == kExclusive || w->by == kUnlocked) MPI_Win_unlock(0, w->window);
  if (w->by == kFence) MPI_Win_fence(0, w->window);
  if (w->by == kLockAll) MPI_Win_flush(0, w->window);
  CHECK(sum == w->turn * size);
  MPI_Barrier(base);
  if (w->by == kExclusive && draw(size) == rank) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->window);
    w->is_held = 1;
  }
}

static void end_window(void* data, int id) {
  (void)id;
  Window* w = data;
  unlock_window(w);
  if (w->by == kFence) MPI_Win_fence(MPI_MODE_NOSUCCEED, w->window);
  if (w->by == kLockAll) MPI_Win_unlock_all(w->window);
  MPI_Barrier(base);
  if (w->flavor == 2) MPI_Win_detach(w->window, w->own);
  MPI_Win_free(&w->window);
  free(w);
}

const Kind window_kind = {"window", make_window, use_window, end_window};

/* --- Files ----------------------------------------------------------------------------------------------------------- */

/* Open MPI 5.0 crashes if one thread begins or completes a request of a file while another is in MPI: it locks no list of them. */
static int file_requests = 0, talking_threads = 0;

typedef struct {
  MPI_File file;
  MPI_Comm comm;
  MPI_Request request;
  int has_view, turn, out, mine, members;
} File;

static void* make_file(int id) {
  File* f = zeroed(sizeof *f);
  char path[512];
  const int by = 1 + draw(2);
  MPI_Comm_split(base, rank % by, rank, &f->comm);
  MPI_Comm_rank(f->comm, &f->mine);
  MPI_Comm_size(f->comm, &f->members);
  snprintf(path, sizeof path, "%s/file-%d-%d", directory, id, rank % by);
  f->request = MPI_REQUEST_NULL;
  const int amode =
      MPI_MODE_CREATE | MPI_MODE_RDWR | (draw(2) ? MPI_MODE_EXCL : 0) | (draw(3) == 0 ? MPI_MODE_DELETE_ON_CLOSE : 0);
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
  CHECK(MPI_File_open(f->comm, path, amode, MPI_INFO_NULL, &f->file) == MPI_SUCCESS);
  f->has_view = draw(2);
  if (f->has_view) {
    MPI_Datatype stripe;
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * f->members, &stripe);
    MPI_Type_commit(&stripe);
    MPI_File_set_view(f->file, (MPI_Offset)sizeof(int) * f->mine, MPI_INT, stripe, "native", MPI_INFO_NULL);
    MPI_Type_free(&stripe);
  }
  if (draw(2)) MPI_File_set_atomicity(f->file, 1);
  return f;
}

static void await(MPI_Request* request) {
  file_requests -= *request != MPI_REQUEST_NULL;
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* Each turn writes one number of this rank behind its last one. */
static void use_file(void* data, int id, int s) {
  (void)s;
  File* f = data;
  MPI_Offset at = -1;
  int in = -1;
  await(&f->request);
  const int turn = f->turn++;
  f->out = 1000 * id + 10 * turn + f->mine;
  if (f->has_view) {
    MPI_File_get_position(f->file, &at);
    CHECK(at == turn);
    if (draw(2)) {
      MPI_File_write_all(f->file, &f->out, 1, MPI_INT, MPI_STATUS_IGNORE);
      return; /* another rank may write it, a little later */
    }
    MPI_File_write(f->file, &f->out, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at(f->file, turn, &in, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(in == f->out);
    return;
  }
  const MPI_Offset here = (MPI_Offset)sizeof(int) * (turn * f->members + f->mine);
  if (draw(2) && talking_threads == 0) {
    MPI_File_iwrite_at(f->file, here, &f->out, 1, MPI_INT, &f->request);
    ++file_requests;
  } else {
    MPI_File_write_at_all(f->file, here, &f->out, 1, MPI_INT, MPI_STATUS_IGNORE);
  }
}

static void end_file(void* data, int id) {
  File* f = data;
  int in = -1;
  await(&f->request);
  MPI_Barrier(f->comm); /* all have written; MPI_File_sync would fail while another file has a request (Open MPI 5.0) */
  for (int t = 0; t < f->turn; ++t) {
    const MPI_Offset at = f->has_view ? t : (MPI_Offset)sizeof(int) * (t * f->members + f->mine);
    MPI_File_read_at(f->file, at, &in, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(in == 1000 * id + 10 * t + f->mine);
  }
  MPI_File_close(&f->file);
  MPI_Comm_free(&f->comm);
  free(f);
}

const Kind file_kind = {"file", make_file, use_file, end_file};

/* --- Threads --------------------------------------------------------------------------------------------------------- */

typedef struct {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t turned;
  MPI_Comm comm; /* MPI_COMM_NULL: it doesn't call MPI */
  long wanted, done;
  int ends;
} Worker;

static void* work(void* data) {
  Worker* w = data;
  pthread_mutex_lock(&w->lock);
  while (!w->ends) {
    while (w->done < w->wanted) {
      if (w->comm != MPI_COMM_NULL) {
        int out = (int)w->done, in = -1;
        MPI_Sendrecv(&out, 1, MPI_INT, right_of(1), 1, &in, 1, MPI_INT, left_of(1), 1, w->comm, MPI_STATUS_IGNORE);
        CHECK(in == out);
      }
      ++w->done;
      pthread_cond_broadcast(&w->turned);
    }
    pthread_cond_wait(&w->turned, &w->lock);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

static void* make_thread(int id) {
  (void)id;
  Worker* w = zeroed(sizeof *w);
  int level;
  MPI_Query_thread(&level);
  w->comm = MPI_COMM_NULL;
  const int talks = draw(2);
  if (level == MPI_THREAD_MULTIPLE && talks && file_requests == 0) {
    MPI_Comm_dup(base, &w->comm);
    ++talking_threads;
  }
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->turned, NULL);
  CHECK(pthread_create(&w->thread, NULL, work, w) == 0);
  return w;
}

/* Beside what this thread does until the next turn. */
static void use_thread(void* data, int id, int s) {
  (void)id, (void)s;
  Worker* w = data;
  pthread_mutex_lock(&w->lock);
  while (w->done < w->wanted) pthread_cond_wait(&w->turned, &w->lock);
  w->wanted += 1 + draw(3);
  pthread_cond_broadcast(&w->turned);
  pthread_mutex_unlock(&w->lock);
}

static void end_thread(void* data, int id) {
  (void)id;
  Worker* w = data;
  pthread_mutex_lock(&w->lock);
  while (w->done < w->wanted) pthread_cond_wait(&w->turned, &w->lock);
  w->ends = 1;
  pthread_cond_broadcast(&w->turned);
  pthread_mutex_unlock(&w->lock);
  CHECK(pthread_join(w->thread, NULL) == 0);
  note(w->done);
  if (w->comm != MPI_COMM_NULL) {
    MPI_Comm_free(&w->comm);
    --talking_threads;
  }
  pthread_cond_destroy(&w->turned);
  pthread_mutex_destroy(&w->lock);
  free(w);
}

const Kind thread_kind = {"thread", make_thread, use_thread, end_thread};
