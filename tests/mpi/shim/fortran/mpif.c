/* What a Fortran compiler generates from a program with mpif.h: calls into Open MPI's Fortran library with integers
 * for handles, in every epoch. It needs no Fortran compiler. */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int Integer;
typedef int Logical;
typedef intptr_t Address;
typedef Integer* I;
typedef void Operation(I in, I inout, I length, I type);
typedef void OnError(I comm, I code, ...);

/* Constants from mpif.h of Open MPI 5.0. */
enum {
  kWorld = 0,
  kSelf = 1,
  kInteger = 7,
  kSum = 3,
  kMax = 1,
  kReturn = 2,
  kNullRequest = 0,
  kNullComm = 2,
  kStatus = 6,
  kTagUb = 0,
  kErrRank = 6,
  kErrOther = 16,
  kNullInfo = 0,
  kNullGroup = 0,
  kNullFile = 0,
  kAnySource = -1,
  kNoKeyval = -1
};
extern Integer mpi_fortran_in_place_[], mpi_fortran_status_ignore_[], mpi_fortran_statuses_ignore_[];

#define F(name, ...) void name(__VA_ARGS__)
F(mpi_init_, I);
F(mpi_finalize_, I);
F(mpi_barrier_, I, I);
F(mpi_comm_rank_, I, I, I);
F(mpi_comm_size_, I, I, I);
F(mpi_comm_dup_, I, I, I);
F(mpi_comm_free_, I, I);
F(mpi_comm_split_, I, I, I, I, I);
F(mpi_allreduce_, void*, void*, I, I, I, I, I);
F(mpi_bcast_, void*, I, I, I, I, I);
F(mpi_send_, void*, I, I, I, I, I, I);
F(mpi_recv_, void*, I, I, I, I, I, I, I);
F(mpi_isend_, void*, I, I, I, I, I, I, I);
F(mpi_irecv_, void*, I, I, I, I, I, I, I);
F(mpi_wait_, I, I, I);
F(mpi_waitall_, I, I, I, I);
F(mpi_test_, I, Logical*, I, I);
F(mpi_request_free_, I, I);
F(mpi_waitany_, I, I, I, I, I);
F(mpi_send_init_, void*, I, I, I, I, I, I, I);
F(mpi_recv_init_, void*, I, I, I, I, I, I, I);
F(mpi_startall_, I, I, I);
F(mpi_type_contiguous_, I, I, I, I);
F(mpi_type_commit_, I, I);
F(mpi_type_free_, I, I);
F(mpi_type_size_, I, I, I);
F(mpi_type_create_f90_real_, I, I, I, I);
F(mpi_type_dup_, I, I, I);
F(mpi_op_create_, Operation*, Logical*, I, I);
F(mpi_op_free_, I, I);
F(mpi_reduce_local_, void*, void*, I, I, I, I);
F(mpi_comm_create_errhandler_, OnError*, I, I);
F(mpi_comm_set_errhandler_, I, I, I);
F(mpi_errhandler_free_, I, I);
F(mpi_comm_call_errhandler_, I, I, I);
F(mpi_comm_create_keyval_, void (*)(I, I, Address*, Address*, Address*, Logical*, I),
  void (*)(I, I, Address*, Address*, I), I, Address*, I);
F(mpi_comm_set_attr_, I, I, Address*, I);
F(mpi_comm_get_attr_, I, I, Address*, Logical*, I);
F(mpi_comm_delete_attr_, I, I, I);
F(mpi_type_create_keyval_, void (*)(I, I, Address*, Address*, Address*, Logical*, I),
  void (*)(I, I, Address*, Address*, I), I, Address*, I);
F(mpi_type_set_attr_, I, I, Address*, I);
F(mpi_type_get_attr_, I, I, Address*, Logical*, I);
F(mpi_keyval_create_, void (*)(I, I, I, I, I, Logical*, I), void (*)(I, I, I, I, I), I, I, I);
F(mpi_attr_put_, I, I, I, I);
F(mpi_attr_get_, I, I, I, Logical*, I);
F(mpi_attr_delete_, I, I, I);
F(mpi_keyval_free_, I, I);
/* MPI-1's names, which MPI 3 removed, and Fortran programs still use */
F(mpi_type_struct_, I, I, I, I, I, I);
F(mpi_type_hindexed_, I, I, I, I, I, I);
F(mpi_type_hvector_, I, I, I, I, I, I);
F(mpi_type_extent_, I, I, I);
F(mpi_type_lb_, I, I, I);
F(mpi_type_ub_, I, I, I);
F(mpi_errhandler_create_, OnError*, I, I);
F(mpi_errhandler_set_, I, I, I);
F(mpi_errhandler_get_, I, I, I);
F(mpi_address_, void*, I, I);
F(mpi_win_create_keyval_, void (*)(I, I, Address*, Address*, Address*, Logical*, I),
  void (*)(I, I, Address*, Address*, I), I, Address*, I);
F(mpi_win_free_keyval_, I, I);
F(mpi_comm_group_, I, I, I);
F(mpi_group_incl_, I, I, I, I, I);
F(mpi_group_union_, I, I, I, I);
F(mpi_group_difference_, I, I, I, I);
F(mpi_group_size_, I, I, I);
F(mpi_group_free_, I, I);
F(mpi_comm_create_, I, I, I, I);
F(mpi_info_create_, I, I);
F(mpi_info_set_, I, const char*, const char*, I, int, int);
F(mpi_info_get_, I, const char*, I, char*, Logical*, I, int, int);
F(mpi_info_get_valuelen_, I, const char*, I, Logical*, I, int);
F(mpi_info_get_nthkey_, I, I, char*, I, int);
F(mpi_grequest_start_, void (*)(Address*, I, I), void (*)(Address*, I), void (*)(Address*, Logical*, I), Address*, I,
  I);
F(mpi_grequest_complete_, I, I);
F(mpi_status_set_elements_, I, I, I, I);
F(mpi_get_count_, I, I, I, I);
F(mpi_file_open_, I, const char*, I, I, I, I, int);
F(mpi_file_close_, I, I);
F(mpi_file_set_view_, I, MPI_Offset*, I, I, const char*, I, I, int);
F(mpi_file_get_position_, I, MPI_Offset*, I);
F(mpi_file_write_, I, void*, I, I, I, I);
F(mpi_file_read_at_, I, MPI_Offset*, void*, I, I, I, I);
F(mpi_file_create_errhandler_, OnError*, I, I);
F(mpi_file_set_errhandler_, I, I, I);
F(mpi_file_call_errhandler_, I, I, I);
#undef F

static Integer rank, size, left, right, ierr, world = kWorld, integer = kInteger, one = 1, sum = kSum;
static Integer pair, twice_and_add_op, own, handled, handled_on = -99, wrong_type;

#define CHECK(what)                                                                    \
  do {                                                                                 \
    if (!(what)) {                                                                     \
      fprintf(stderr, "rank %d, %s:%d: wrong: %s\n", rank, __FILE__, __LINE__, #what); \
      printf("wrong %s:%d %s\n", __FILE__, __LINE__, #what), fflush(stdout), _exit(3); \
    }                                                                                  \
  } while (0)

static volatile sig_atomic_t enough = 0;
static void on_enough(int number) { enough = number; }

static void twice_and_add(I in, I inout, I length, I type) {
  const int parts = *type == pair ? 2 : 1;
  if (*type != pair && *type != kInteger) wrong_type = 1;
  for (int i = 0; i < *length * parts; ++i) inout[i] += 2 * in[i];
}

/* More functions than the shim has trampolines: the last ones get MPI's number of a type of the program, which also
 * works. */
static Integer sizes_wrong;
static void add_parts(I in, I inout, I length, I type) {
  Integer bytes = 0, error = 0;
  mpi_type_size_(type, &bytes, &error);
  if (error != 0 || bytes != 8) sizes_wrong = 1;
  for (int i = 0; i < *length * 2; ++i) inout[i] += in[i];
}
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define MANY TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) TEN(12) TEN(13) TEN(14)
#define ONE(n) \
  static void add_##n(I in, I inout, I length, I type) { add_parts(in, inout, length, type); }
MANY
#undef ONE
#define ONE(n) add_##n,
    static Operation* const many[] = {MANY};
enum { kMany = sizeof many / sizeof *many };
static Integer many_ops[kMany];

static void on_error(I comm, I code, ...) { handled = *code, handled_on = *comm; }

static int copies, deletions;
static void copy_address(I comm, I key, Address* extra, Address* in, Address* out, Logical* flag, I error) {
  (void)comm, (void)key;
  *out = *in + *extra, *flag = 1, *error = 0, ++copies;
}
static void delete_address(I comm, I key, Address* value, Address* extra, I error) {
  (void)comm, (void)key, (void)value, (void)extra;
  *error = 0, ++deletions;
}
static void copy_integer(I comm, I key, I extra, I in, I out, Logical* flag, I error) {
  (void)comm, (void)key;
  *out = *in + *extra, *flag = 1, *error = 0, ++copies;
}
static void delete_integer(I comm, I key, I value, I extra, I error) {
  (void)comm, (void)key, (void)value, (void)extra;
  *error = 0, ++deletions;
}

static Address freed = 0;
static void query(Address* extra, I status, I error) {
  Integer count = (Integer)*extra;
  mpi_status_set_elements_(status, &integer, &count, error);
}
static void free_it(Address* extra, I error) { freed = *extra, *extra = -*extra, *error = 0; }
static void cancel_it(Address* extra, Logical* complete, I error) { (void)extra, (void)complete, *error = 0; }

static void messages(Integer s, Integer comm) {
  Integer out[2] = {rank, s}, in[2] = {-1, -1}, requests[2], statuses[2][kStatus], tag = s % 100, count, two = 2, which;
  Logical flag = 0;
  mpi_irecv_(in, &one, &pair, &left, &tag, &comm, &requests[0], &ierr);
  mpi_isend_(out, &one, &pair, &right, &tag, &comm, &requests[1], &ierr);
  mpi_waitall_(&two, requests, statuses[0], &ierr);
  CHECK(ierr == 0 && in[0] == left && in[1] == s && statuses[0][0] == left && statuses[0][1] == tag);
  CHECK(requests[0] == kNullRequest && requests[1] == kNullRequest);
  mpi_get_count_(statuses[0], &pair, &count, &ierr);
  CHECK(count == 1);
  mpi_irecv_(in, &two, &integer, &left, &tag, &comm, &requests[0], &ierr);
  mpi_send_(out, &two, &integer, &right, &tag, &comm, &ierr);
  while (!flag) mpi_test_(&requests[0], &flag, mpi_fortran_status_ignore_, &ierr);
  CHECK(in[0] == left && requests[0] == kNullRequest);
  mpi_irecv_(in, &two, &integer, &left, &tag, &comm, &requests[0], &ierr);
  requests[1] = kNullRequest;
  mpi_send_(out, &two, &integer, &right, &tag, &comm, &ierr);
  mpi_waitany_(&two, requests, &which, statuses[0], &ierr);
  CHECK(which == 1 && requests[0] == kNullRequest && statuses[0][0] == left);
}

static void operations(Integer s) {
  Integer in[2] = {rank + s, 1}, out[2], expected = 0;
  mpi_allreduce_(in, out, &one, &pair, &twice_and_add_op, &world, &ierr);
  /* MPI may choose the order of the ranks if an operation commutes */
  CHECK(ierr == 0 && !wrong_type && out[1] >= size);
  /* One function, in a procedure that frees no operation. */
  for (int i = 0; i < (s == 0 ? 300 : 3); ++i) {
    Integer op;
    Logical commutes = 1;
    mpi_op_create_(twice_and_add, &commutes, &op, &ierr);
    CHECK(ierr == 0);
    out[0] = out[1] = 10;
    mpi_reduce_local_(in, out, &one, &pair, &op, &ierr);
    CHECK(ierr == 0 && !wrong_type && out[0] == 10 + 2 * in[0] && out[1] == 12);
  }
  for (int i = 0; i < kMany; ++i) {
    out[0] = out[1] = 10;
    mpi_reduce_local_(in, out, &one, &pair, &many_ops[i], &ierr);
    CHECK(ierr == 0 && !sizes_wrong && out[0] == 10 + in[0] && out[1] == 11);
  }
  Integer mine = 1;
  mpi_allreduce_(mpi_fortran_in_place_, &mine, &one, &integer, &sum, &world, &ierr);
  CHECK(ierr == 0 && mine == size);
  (void)expected;
}

static void groups(void) {
  Integer all, first, rest, both, zero = 0, number, comm;
  mpi_comm_group_(&world, &all, &ierr);
  mpi_group_incl_(&all, &one, &zero, &first, &ierr);
  mpi_group_difference_(&all, &first, &rest, &ierr);
  mpi_group_union_(&first, &rest, &both, &ierr);
  mpi_group_size_(&rest, &number, &ierr);
  CHECK(ierr == 0 && number == size - 1);
  mpi_comm_create_(&world, &both, &comm, &ierr);
  mpi_comm_size_(&comm, &number, &ierr);
  CHECK(ierr == 0 && number == size);
  mpi_comm_free_(&comm, &ierr);
  CHECK(comm == kNullComm);
  mpi_group_free_(&all, &ierr), mpi_group_free_(&first, &ierr), mpi_group_free_(&rest, &ierr),
      mpi_group_free_(&both, &ierr);
}

static void generalised(Integer s) {
  Address extra = s + 3;
  Integer request, status[kStatus], count = -1;
  mpi_grequest_start_(query, free_it, cancel_it, &extra, &request, &ierr);
  mpi_grequest_complete_(&request, &ierr);
  mpi_wait_(&request, status, &ierr);
  mpi_get_count_(status, &integer, &count, &ierr);
  CHECK(ierr == 0 && count == s + 3 && freed == s + 3 && request == kNullRequest);
  CHECK(extra == -(s + 3)); /* the functions get the program's variable, as under Open MPI alone */
}

static void fails(Integer comm) {
  Integer nowhere = size + 5, zero = 0;
  handled = 0;
  mpi_send_(&zero, &one, &integer, &nowhere, &zero, &comm, &ierr);
  CHECK(ierr != 0 && handled == ierr && handled_on == comm);
}

/* `lasting`: made before the first epoch change of two integers at 0 and 8. */
static void old_types(Integer s, Integer lasting) {
  Integer lengths[2] = {1, 1}, offsets[2] = {0, 8}, types[2] = {kInteger, kInteger}, two = 2, stride = 8, got = -1,
          number = s % 100;
  Integer made[3], status[kStatus];
  mpi_type_struct_(&two, lengths, offsets, types, &made[0], &ierr);
  CHECK(ierr == 0);
  mpi_type_hindexed_(&two, lengths, offsets, &integer, &made[1], &ierr);
  CHECK(ierr == 0);
  mpi_type_hvector_(&two, &one, &stride, &integer, &made[2], &ierr);
  CHECK(ierr == 0);
  const Integer all[] = {made[0], made[1], made[2], lasting};
  for (int i = 0; i < 4; ++i) {
    Integer type = all[i], out[3] = {rank, -1, s}, in[3] = {-1, -1, -1};
    mpi_type_extent_(&type, &got, &ierr);
    CHECK(ierr == 0 && got == 12);
    mpi_type_lb_(&type, &got, &ierr);
    CHECK(ierr == 0 && got == 0);
    mpi_type_ub_(&type, &got, &ierr);
    CHECK(ierr == 0 && got == 12);
    if (i < 3) mpi_type_commit_(&type, &ierr);
    Integer request;
    mpi_irecv_(in, &one, &type, &left, &number, &world, &request, &ierr);
    mpi_send_(out, &one, &type, &right, &number, &world, &ierr);
    mpi_wait_(&request, status, &ierr);
    CHECK(ierr == 0 && in[0] == left && in[1] == -1 && in[2] == s);
    if (i < 3) mpi_type_free_(&type, &ierr);
  }
}

static void old_handlers(void) {
  Integer comm, made, found = -1, nowhere = size + 5, zero = 0;
  mpi_comm_dup_(&world, &comm, &ierr);
  mpi_errhandler_create_(on_error, &made, &ierr);
  CHECK(ierr == 0);
  mpi_errhandler_set_(&comm, &made, &ierr);
  CHECK(ierr == 0);
  mpi_errhandler_get_(&comm, &found, &ierr);
  CHECK(ierr == 0 && found == made);
  handled = 0;
  mpi_send_(&zero, &one, &integer, &nowhere, &zero, &comm, &ierr);
  CHECK(handled == ierr && handled_on == comm);
  mpi_errhandler_free_(&made, &ierr);
  mpi_comm_free_(&comm, &ierr);
}

static void old_attributes(Integer comm, Integer lasting_key) {
  Integer key, extra = 1, value = 5, got = -1;
  Logical flag = 0;
  mpi_keyval_create_(copy_integer, delete_integer, &key, &extra, &ierr);
  mpi_attr_put_(&comm, &key, &value, &ierr);
  mpi_attr_get_(&comm, &key, &got, &flag, &ierr);
  CHECK(ierr == 0 && flag && got == 5);
  mpi_attr_delete_(&comm, &key, &ierr);
  CHECK(ierr == 0);
  mpi_attr_get_(&comm, &key, &got, &flag, &ierr);
  CHECK(ierr == 0 && !flag);
  mpi_keyval_free_(&key, &ierr);
  CHECK(ierr == 0 && key == kNoKeyval);
  mpi_attr_delete_(&comm, &lasting_key, &ierr);
  CHECK(ierr == 0);
  value = 77;
  mpi_attr_put_(&comm, &lasting_key, &value, &ierr);
  CHECK(ierr == 0);
}

static int on_window_removed(MPI_Win window, int key, void* value, void* extra) {
  (void)window, (void)key, (void)extra;
  ++*(int*)value;
  return MPI_SUCCESS;
}

/* A key for windows that C made lasts, beside those that Fortran makes. */
static void window_keys(int lasting) {
  static int memory[4];
  int removed = 0;
  MPI_Win window;
  MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_SELF, &window);
  MPI_Win_set_attr(window, lasting, &removed);
  MPI_Win_free(&window);
  CHECK(removed == 1);
  Integer next = -1;
  Address extra = 0;
  mpi_win_create_keyval_(copy_address, delete_address, &next, &extra, &ierr);
  CHECK(ierr == 0);
  mpi_win_free_keyval_(&next, &ierr);
  CHECK(ierr == 0);
}

static void infos(Integer info) {
  char text[12], key[8];
  Integer capacity = 11, length = 0, zero = 0;
  Logical flag = 0;
  mpi_info_get_(&info, "colour", &capacity, text, &flag, &ierr, 6, 12);
  CHECK(ierr == 0 && flag && memcmp(text, "blue        ", 12) == 0);
  mpi_info_get_valuelen_(&info, "colour", &length, &flag, &ierr, 6);
  CHECK(flag && length == 4);
  mpi_info_get_nthkey_(&info, &zero, key, &ierr, 8);
  CHECK(memcmp(key, "colour  ", 8) == 0);
}

/* A file of this rank, whose view begins behind a header. It ends with MPI_File_close. */
static Integer opened;
static char path[64];
static void open_file(void) {
  Integer self = kSelf, null = kNullInfo, errhandler;
  Integer amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  MPI_Offset header = 16;
  const int length = snprintf(path, sizeof path, "/tmp/bsp-shim-mpif-%d", (int)getpid());
  mpi_file_open_(&self, path, &amode, &null, &opened, &ierr, length);
  CHECK(ierr == 0);
  mpi_file_set_view_(&opened, &header, &integer, &pair, "native", &null, &ierr, 6);
  CHECK(ierr == 0);
  mpi_file_create_errhandler_(on_error, &errhandler, &ierr);
  mpi_file_set_errhandler_(&opened, &errhandler, &ierr);
  mpi_errhandler_free_(&errhandler, &ierr);
}

static void use_file(Integer s) {
  Integer in[2] = {-1, -1}, out[2] = {rank, s}, other = kErrOther;
  MPI_Offset at = -1;
  mpi_file_get_position_(&opened, &at, &ierr);
  CHECK(ierr == 0 && at == 2 * (MPI_Offset)s);
  mpi_file_write_(&opened, out, &one, &pair, mpi_fortran_status_ignore_, &ierr);
  CHECK(ierr == 0);
  at = s / 2 * 2;
  mpi_file_read_at_(&opened, &at, in, &one, &pair, mpi_fortran_status_ignore_, &ierr);
  CHECK(ierr == 0 && in[0] == rank && in[1] == s / 2);
  handled = 0;
  mpi_file_call_errhandler_(&opened, &other, &ierr);
  CHECK(ierr == 0 && handled == kErrOther && handled_on == opened);
}

static void close_file(void) {
  mpi_file_close_(&opened, &ierr);
  CHECK(ierr == 0 && opened == kNullFile && access(path, F_OK) != 0);
}

int main(void) {
  signal(SIGUSR1, on_enough);
  mpi_init_(&ierr);
  CHECK(ierr == 0);
  mpi_comm_rank_(&world, &rank, &ierr);
  mpi_comm_size_(&world, &size, &ierr);
  left = (rank + size - 1) % size, right = (rank + 1) % size;
  Integer two = 2, errhandler, key, old_key, type_key, info, six = 6, thirty = 30, parametrised, copied_type;
  Logical commutes = 1, flag = 0;
  mpi_type_contiguous_(&two, &integer, &pair, &ierr);
  mpi_type_commit_(&pair, &ierr);
  mpi_type_create_f90_real_(&six, &thirty, &parametrised, &ierr);
  mpi_op_create_(twice_and_add, &commutes, &twice_and_add_op, &ierr);
  for (int i = 0; i < kMany; ++i) {
    mpi_op_create_(many[i], &commutes, &many_ops[i], &ierr);
    CHECK(ierr == 0);
  }
  mpi_comm_dup_(&world, &own, &ierr);
  mpi_comm_create_errhandler_(on_error, &errhandler, &ierr);
  mpi_comm_set_errhandler_(&own, &errhandler, &ierr);
  mpi_errhandler_free_(&errhandler, &ierr);
  Address extra = 10, value = 5000000000, got = -1;
  mpi_comm_create_keyval_(copy_address, delete_address, &key, &extra, &ierr);
  mpi_comm_set_attr_(&own, &key, &value, &ierr);
  mpi_comm_set_attr_(&world, &key, &value, &ierr);
  Integer old_extra = 1, old_value = 77, old_got = -1;
  mpi_keyval_create_(copy_integer, delete_integer, &old_key, &old_extra, &ierr);
  mpi_attr_put_(&own, &old_key, &old_value, &ierr);
  mpi_type_create_keyval_(copy_address, delete_address, &type_key, &extra, &ierr);
  mpi_type_set_attr_(&pair, &type_key, &value, &ierr);
  mpi_info_create_(&info, &ierr);
  mpi_info_set_(&info, "colour", "blue", &ierr, 6, 4);
  Integer persistent[2], box[2] = {-1, -1}, tag = 200;
  mpi_send_init_(&box[0], &one, &integer, &right, &tag, &own, &persistent[0], &ierr);
  mpi_recv_init_(&box[1], &one, &integer, &left, &tag, &own, &persistent[1], &ierr);
  const Integer first = persistent[0], second = persistent[1];

  Integer lengths[2] = {1, 1}, offsets[2] = {0, 8}, parts[2] = {kInteger, kInteger}, lasting;
  mpi_type_struct_(&two, lengths, offsets, parts, &lasting, &ierr);
  mpi_type_commit_(&lasting, &ierr);
  CHECK(ierr == 0);

  int window_key = MPI_KEYVAL_INVALID;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_window_removed, &window_key, NULL);

  open_file();
  for (Integer s = 0;; ++s) {
    Integer mine = enough, any = 0, max = kMax;
    mpi_allreduce_(&mine, &any, &one, &integer, &max, &world, &ierr);
    if (any) break;
    messages(s, world), messages(s, own);
    operations(s), groups(), generalised(s), fails(own), infos(info), use_file(s);
    old_types(s, lasting), old_handlers(), old_attributes(own, old_key), window_keys(window_key);
    mpi_comm_get_attr_(&own, &key, &got, &flag, &ierr);
    CHECK(ierr == 0 && flag && got == value);
    got = -1;
    mpi_comm_get_attr_(&world, &key, &got, &flag, &ierr);
    CHECK(ierr == 0 && flag && got == value);
    mpi_attr_get_(&own, &old_key, &old_got, &flag, &ierr);
    CHECK(ierr == 0 && flag && old_got == 77);
    mpi_type_get_attr_(&pair, &type_key, &got, &flag, &ierr);
    CHECK(ierr == 0 && flag && got == value);
    Integer upper = kTagUb;
    mpi_comm_get_attr_(&world, &upper, &got, &flag, &ierr);
    CHECK(ierr == 0 && flag && got >= 32767);
    Integer brief;
    copies = deletions = 0;
    mpi_comm_dup_(&own, &brief, &ierr);
    CHECK(ierr == 0 && copies == 2);
    mpi_comm_get_attr_(&brief, &key, &got, &flag, &ierr);
    CHECK(flag && got == value + 10);
    mpi_attr_get_(&brief, &old_key, &old_got, &flag, &ierr);
    CHECK(flag && old_got == 78);
    mpi_comm_free_(&brief, &ierr);
    CHECK(ierr == 0 && deletions == 2);
    mpi_type_dup_(&pair, &copied_type, &ierr);
    mpi_type_free_(&copied_type, &ierr);
    CHECK(copies == 3 && deletions == 3);
    Integer again;
    mpi_type_create_f90_real_(&six, &thirty, &again, &ierr);
    CHECK(again == parametrised);
    Integer statuses[2][kStatus];
    box[0] = rank + s, box[1] = -1;
    mpi_startall_(&two, persistent, &ierr);
    mpi_waitall_(&two, persistent, statuses[0], &ierr);
    CHECK(box[1] == left + s && persistent[0] == first && persistent[1] == second);
    usleep(1000);
    mpi_barrier_(&world, &ierr);
  }
  close_file();
  mpi_request_free_(&persistent[0], &ierr), mpi_request_free_(&persistent[1], &ierr);
  mpi_op_free_(&twice_and_add_op, &ierr);
  mpi_comm_free_(&own, &ierr);
  mpi_finalize_(&ierr);
  CHECK(ierr == 0);
  printf("ok mpif\n");
  return 0;
}
