/* Datatypes, operations, requests, messages, statuses, and queries. */
#include "fixtures.h"

static void add_up(void* in, void* inout, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void check_size(MPI_Datatype* type, int bytes) {
  MPI_Type_size(*type, &number);
  CHECK(number == bytes);
  MPI_Type_free(type);
}

static void datatypes(void) {
  MPI_Datatype type, copy, inner[1];
  MPI_Count lower, extent;
  MPI_Aint aint, other_aint, apart[2] = {0, 16};
  int two[2] = {1, 1}, at[2] = {0, 3}, whole[1] = {4}, part[1] = {2}, start[1] = {1}, grid_of[1] = {1},
      block[1] = {MPI_DISTRIBUTE_BLOCK}, plain[1] = {MPI_DISTRIBUTE_DFLT_DARG};
  MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Type_dup(type, &copy);
  MPI_Type_set_name(copy, "every");
  MPI_Type_get_name(copy, text, &number);
  CHECK(strcmp(text, "every") == 0);
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL);
  MPI_Type_set_attr(copy, keyval, &value);
  MPI_Type_get_attr(copy, keyval, &got, &flag);
  CHECK(flag && got == &value);
  MPI_Type_delete_attr(copy, keyval);
  MPI_Type_free_keyval(&keyval);
  CHECK(MPI_Type_f2c(MPI_Type_c2f(copy)) == copy);
  check_size(&copy, 12);
  MPI_Type_get_extent(type, &aint, &other_aint);
  MPI_Type_get_extent_x(type, &lower, &extent);
  CHECK(other_aint == 12 && extent == 12);
  MPI_Type_get_true_extent(type, &aint, &other_aint);
  MPI_Type_get_true_extent_x(type, &lower, &extent);
  MPI_Type_size_x(type, &extent);
  int integers, addresses, datatypes_in, combiner;
  MPI_Type_get_envelope(type, &integers, &addresses, &datatypes_in, &combiner);
  CHECK(combiner == MPI_COMBINER_CONTIGUOUS && integers == 1 && datatypes_in == 1);
  MPI_Type_get_contents(type, integers, addresses, datatypes_in, some_ints, &aint, inner);
  CHECK(inner[0] == MPI_INT && some_ints[0] == 3);
  check_size(&type, 12);
  MPI_Type_vector(2, 1, 3, MPI_INT, &type), check_size(&type, 8);
  MPI_Type_create_hvector(2, 1, 16, MPI_INT, &type), check_size(&type, 8);
  MPI_Type_indexed(2, two, at, MPI_INT, &type), check_size(&type, 8);
  MPI_Type_create_hindexed(2, two, apart, MPI_INT, &type), check_size(&type, 8);
  MPI_Type_create_indexed_block(2, 1, at, MPI_INT, &type), check_size(&type, 8);
  MPI_Type_create_hindexed_block(2, 1, apart, MPI_INT, &type), check_size(&type, 8);
  MPI_Type_create_struct(2, two, apart, types, &type), check_size(&type, 12);
  MPI_Type_create_subarray(1, whole, part, start, MPI_ORDER_C, MPI_INT, &type), check_size(&type, 8);
  MPI_Type_create_darray(1, 0, 1, whole, block, plain, grid_of, MPI_ORDER_C, MPI_INT, &type), check_size(&type, 16);
  MPI_Type_create_resized(MPI_INT, 0, 16, &type), check_size(&type, 4);
  MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &type);
  MPI_Type_create_f90_integer(9, &type);
  MPI_Type_create_f90_real(6, 30, &type);
  MPI_Type_create_f90_complex(6, 30, &type);
  MPI_Get_address(given, &address);
  CHECK(address == (MPI_Aint)given);
  int position = 0, out_position = 0;
  MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &number);
  CHECK(number >= 4);
  given[0] = 17;
  MPI_Pack(given, 1, MPI_INT, text, sizeof text, &position, MPI_COMM_WORLD);
  MPI_Unpack(text, position, &out_position, taken, 1, MPI_INT, MPI_COMM_WORLD);
  CHECK(taken[0] == 17);
  aint = 0, other_aint = 0;
  MPI_Pack_external_size("external32", 1, MPI_INT, &address);
  MPI_Pack_external("external32", given, 1, MPI_INT, text, sizeof text, &aint);
  taken[0] = 0;
  MPI_Unpack_external("external32", text, aint, &other_aint, taken, 1, MPI_INT);
  CHECK(taken[0] == 17);
}

static void operations(void) {
  MPI_Op op;
  MPI_Op_create(add_up, 1, &op);
  MPI_Op_commutative(op, &flag);
  CHECK(flag && MPI_Op_f2c(MPI_Op_c2f(op)) == op);
  given[0] = 3, taken[0] = 4;
  MPI_Reduce_local(given, taken, 1, MPI_INT, op);
  CHECK(taken[0] == 7);
  MPI_Reduce_local(given, taken, 1, MPI_INT, MPI_SUM);
  CHECK(taken[0] == 10);
  MPI_Op_free(&op);
}

static int query(void* state, MPI_Status* s) {
  (void)state;
  MPI_Status_set_elements(s, MPI_INT, 2);
  MPI_Status_set_elements_x(s, MPI_INT, 2);
  MPI_Status_set_cancelled(s, 0);
  s->MPI_SOURCE = s->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int freed(void* state) { return (void)state, MPI_SUCCESS; }
static int cancelled(void* state, int complete) { return (void)state, (void)complete, MPI_SUCCESS; }

static void to_self(MPI_Request* requests, int n) {
  for (int i = 0; i < n; ++i) MPI_Irecv(&taken[i], 1, MPI_INT, rank, 20 + i, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < n; ++i) MPI_Send(&given[i], 1, MPI_INT, rank, 20 + i, MPI_COMM_WORLD);
}

static void requests(void) {
  MPI_Request many[2];
  MPI_Status statuses[2];
  int indices[2];
  to_self(many, 2), MPI_Waitall(2, many, statuses);
  to_self(many, 2), MPI_Waitany(2, many, &number, &status), MPI_Waitall(2, many, statuses);
  to_self(many, 2), MPI_Waitsome(2, many, &number, indices, statuses), MPI_Waitall(2, many, statuses);
  to_self(many, 1);
  for (flag = 0; !flag;) MPI_Request_get_status(many[0], &flag, &status);
  for (flag = 0; !flag;) MPI_Test(&many[0], &flag, &status);
  to_self(many, 2);
  for (flag = 0; !flag;) MPI_Testall(2, many, &flag, statuses);
  to_self(many, 1);
  for (flag = 0; !flag;) MPI_Testany(1, many, &number, &flag, &status);
  to_self(many, 1);
  for (number = 0; number == 0;) MPI_Testsome(1, many, &number, indices, statuses);
  MPI_Irecv(taken, 1, MPI_INT, rank, 30, MPI_COMM_WORLD, &request);
  CHECK(MPI_Request_f2c(MPI_Request_c2f(request)) == request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &flag);
  CHECK(flag);
  MPI_Send_init(given, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &many[0]);
  MPI_Recv_init(taken, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &many[1]);
  MPI_Startall(2, many);
  MPI_Waitall(2, many, statuses);
  MPI_Request_free(&many[0]);
  MPI_Request_free(&many[1]);
  MPI_Grequest_start(query, freed, cancelled, NULL, &request);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, &status);
  MPI_Get_count(&status, MPI_INT, &number);
  CHECK(number == 2);
}

static void messages(void) {
  MPI_Message message;
  given[0] = 5;
  MPI_Isend(given, 1, MPI_INT, rank, 40, MPI_COMM_WORLD, &request);
  MPI_Probe(rank, 40, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_INT, &number);
  CHECK(number == 1);
  for (flag = 0; !flag;) MPI_Iprobe(rank, 40, MPI_COMM_WORLD, &flag, &status);
  MPI_Mprobe(rank, 40, MPI_COMM_WORLD, &message, &status);
  MPI_Fint as_int = MPI_Message_c2f(message);
  message = MPI_Message_f2c(as_int);
  MPI_Mrecv(taken, 1, MPI_INT, &message, &status);
  CHECK(taken[0] == 5);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Isend(given, 1, MPI_INT, rank, 41, MPI_COMM_WORLD, &request);
  for (flag = 0; !flag;) MPI_Improbe(rank, 41, MPI_COMM_WORLD, &flag, &message, &status);
  MPI_Request receive;
  MPI_Imrecv(taken, 1, MPI_INT, &message, &receive);
  MPI_Wait(&receive, &status);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Get_elements(&status, MPI_INT, &number);
  MPI_Count elements;
  MPI_Get_elements_x(&status, MPI_INT, &elements);
  CHECK(number == 1 && elements == 1);
  MPI_Fint in_fortran[MPI_F_STATUS_SIZE];
  MPI_F08_status in_f08;
  MPI_Status_c2f(&status, in_fortran);
  MPI_Status_f2c(in_fortran, &status);
  MPI_Status_c2f08(&status, &in_f08);
  MPI_Status_f082c(&in_f08, &status);
  MPI_Status_f082f(&in_f08, in_fortran);
  MPI_Status_f2f08(in_fortran, &in_f08);
  CHECK(status.MPI_SOURCE == rank && status.MPI_TAG == 41);
}

static void partitioned(void) {
  MPI_Request out, in;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  int last[1] = {3};
  MPI_Psend_init(given, 4, 1, MPI_INT, next, 50, MPI_COMM_WORLD, MPI_INFO_NULL, &out);
  MPI_Precv_init(taken, 4, 1, MPI_INT, before, 50, MPI_COMM_WORLD, MPI_INFO_NULL, &in);
  MPI_Start(&in);
  MPI_Start(&out);
  MPI_Pready(0, out);
  MPI_Pready_range(1, 2, out);
  MPI_Pready_list(1, last, out);
  for (flag = 0; !flag;) MPI_Parrived(in, 2, &flag);
  MPI_Wait(&out, MPI_STATUS_IGNORE);
  MPI_Wait(&in, MPI_STATUS_IGNORE);
  MPI_Request_free(&out);
  MPI_Request_free(&in);
}

static void itself(void) {
  void* memory;
  static char buffer[1024 + MPI_BSEND_OVERHEAD];
  MPI_Alloc_mem(64, MPI_INFO_NULL, &memory);
  MPI_Free_mem(memory);
  MPI_Buffer_attach(buffer, sizeof buffer);
  MPI_Bsend(given, 1, MPI_INT, rank, 60, MPI_COMM_WORLD);
  MPI_Recv(taken, 1, MPI_INT, rank, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Buffer_detach(&memory, &number);
  CHECK(memory == buffer);
  MPI_Add_error_class(&number);
  MPI_Add_error_code(number, &other_number);
  MPI_Add_error_string(other_number, "every error");
  MPI_Error_class(other_number, &flag);
  CHECK(flag == number);
  MPI_Error_string(other_number, text, &number);
  CHECK(strcmp(text, "every error") == 0);
  MPI_Initialized(&flag);
  CHECK(flag);
  MPI_Finalized(&flag);
  CHECK(!flag);
  MPI_Query_thread(&number);
  MPI_Is_thread_main(&flag);
  CHECK(flag);
  MPI_Get_version(&number, &other_number);
  MPI_Get_library_version(text, &number);
  MPI_Get_processor_name(text, &number);
  CHECK(MPI_Wtime() > 0 && MPI_Wtick() > 0);
  MPI_Pcontrol(1);
}
