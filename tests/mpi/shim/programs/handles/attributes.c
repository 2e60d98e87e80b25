/* Attributes, error handlers, infos, and requests that have completed but were not waited for. */
#include "check.h"

static int deleted = 0, copied = 0, errors_seen = 0;
static MPI_Comm watched = MPI_COMM_NULL, complained = MPI_COMM_NULL;

static int copy_it(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key;
  ++copied;
  *(void**)out = (char*)in + *(int*)extra;
  *flag = 1;
  return MPI_SUCCESS;
}

static int delete_it(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

static void complain(MPI_Comm* comm, int* code, ...) {
  (void)code;
  ++errors_seen;
  complained = *comm;
}

static int refuse(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)extra;
  return *(int*)value;
}

/* MPI_Finalize deletes attributes of MPI_COMM_SELF first, in reverse order of setting, even if the program has freed
 * the keys. */
enum { kLast = 20 };
static int numbers[kLast], next_to_go = kLast - 1, wrong_ends = 0;
static int at_the_end(MPI_Comm comm, int key, void* value, void* extra) {
  (void)key, (void)extra;
  int finalized = 1;
  MPI_Finalized(&finalized);
  wrong_ends += finalized || comm != MPI_COMM_SELF || value != &numbers[next_to_go--];
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, key, plain_key, flag, extra = 10, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  void* value;

  MPI_Comm_create_keyval(copy_it, delete_it, &key, &extra);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &plain_key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, (void*)1000);
  MPI_Comm_set_attr(MPI_COMM_WORLD, plain_key, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &watched);
  CHECK(copied == 1);
  MPI_Errhandler handler, found;
  MPI_Comm_create_errhandler(complain, &handler);
  MPI_Comm_set_errhandler(watched, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "colour", "blue");
  int type_key;
  MPI_Datatype type;
  MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_set_attr(type, type_key, &key);

  for (int s = 0; going_on(s, n); ++s) {
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag);
    CHECK(flag && value == (void*)1000);
    MPI_Comm_get_attr(watched, key, &value, &flag);
    CHECK(flag && value == (void*)1010);
    MPI_Comm_get_attr(watched, plain_key, &value, &flag);
    CHECK(!flag);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    CHECK(flag && *(int*)value >= 32767);
    MPI_Type_get_attr(type, type_key, &value, &flag);
    CHECK(flag && value == &key);

    const int before = errors_seen;
    complained = MPI_COMM_NULL;
    CHECK(MPI_Send(NULL, 0, MPI_INT, size + 5, 0, watched) != MPI_SUCCESS);
    CHECK(errors_seen == before + 1 && complained == watched);
    CHECK(MPI_Send(NULL, 0, MPI_INT, size + 5, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
    CHECK(errors_seen == before + 1);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
    CHECK(found == MPI_ERRORS_RETURN);

    char text[16];
    MPI_Info_get(info, "colour", 15, text, &flag);
    CHECK(flag && strcmp(text, "blue") == 0);

    if (s % 30 == 0) {
      MPI_Comm brief;
      const int deletions = deleted;
      MPI_Comm_dup(watched, &brief);
      MPI_Comm_get_attr(brief, key, &value, &flag);
      CHECK(flag && value == (void*)1020);
      MPI_Comm_free(&brief);
      CHECK(deleted == deletions + 1);
    }

    /* The message has arrived, but the program tests only after the edge, perhaps in another epoch. */
    int token = rank + s, got = -1, done = 0;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Irecv(&got, 1, MPI_INT, left, s % 100, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&token, 1, MPI_INT, right, s % 100, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 2; ++i)
      for (done = 0; !done;) MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE);
    edge();
    if (s % 2) {
      MPI_Wait(&requests[0], &status);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    } else {
      MPI_Status both[2];
      MPI_Waitall(2, requests, both);
      status = both[0];
    }
    int count;
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(got == left + s && status.MPI_SOURCE == left && status.MPI_TAG == s % 100 && count == 1);
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
  }
  const int deletions = deleted;
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  CHECK(deleted == deletions + 1);
  MPI_Comm_free_keyval(&key);
  CHECK(key == MPI_KEYVAL_INVALID);
  MPI_Comm_free(&watched);
  CHECK(deleted == deletions + 2);
  int refusing, keys[kLast],
      code = MPI_ERR_OTHER; /* a failing callback keeps the communicator, and its error is returned */
  MPI_Comm kept, copy;
  MPI_Comm_create_errhandler(complain, &handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &kept);
  MPI_Comm_set_errhandler(kept, handler);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, refuse, &refusing, NULL);
  MPI_Comm_set_attr(kept, refusing, &code);
  copy = kept;
  errors_seen = 0;
  CHECK(MPI_Comm_free(&copy) == MPI_ERR_OTHER && copy == kept && errors_seen == 1 && complained == kept);
  CHECK(MPI_Comm_delete_attr(kept, refusing) == MPI_ERR_OTHER && errors_seen == 2);
  code = MPI_SUCCESS;
  MPI_Comm_free(&kept);
  for (int i = 0; i < kLast; ++i) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &keys[i], NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[i], &numbers[i]);
  }
  for (int i = 0; i < kLast; ++i) MPI_Comm_free_keyval(&keys[i]);
  MPI_Finalize();
  if (wrong_ends != 0 || next_to_go != -1) {
    printf("wrong: %d ends, %d to go\n", wrong_ends, next_to_go + 1);
    return 1;
  }
  printf("ok attributes\n");
  return 0;
}
