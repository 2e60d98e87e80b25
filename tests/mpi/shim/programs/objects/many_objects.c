/* Thousands of objects of every kind, kept from before the first epoch to the end: no epoch may add to their memory. */
#include "check.h"

enum { kMany = 3000 };

static void add_words(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void on_error(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
}

static int received[kMany];

static void make_one_of_each(int i) {
  int code = -1, key = -1, first = 0;
  MPI_Datatype type;
  MPI_Op op;
  MPI_Errhandler handler;
  MPI_Info info;
  MPI_Group world, alone;
  MPI_Request request;
  MPI_Add_error_class(&code);
  MPI_Add_error_string(code, "one of many");
  MPI_Type_vector(3, 1, 2 + i, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(add_words, 1, &op);
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &first, &alone);
  MPI_Recv_init(&received[i], 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &request);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  for (int i = 0; i < kMany; ++i) make_one_of_each(i);
  for (int s = 0; going_on(s, n); ++s) edge();
  MPI_Finalize();
  printf("ok many_objects\n");
  return 0;
}
