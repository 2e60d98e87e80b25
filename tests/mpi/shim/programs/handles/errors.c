/* Errors are returned as codes if the program requests that, and passed to its own handlers otherwise; codes that it
 * adds keep their numbers. */
#include "check.h"

static int handled = 0;
static MPI_Comm handled_on = MPI_COMM_NULL;
static void on_error(MPI_Comm* comm, int* code, ...) {
  int class = -1;
  MPI_Error_class(*code, &class);
  handled = class;
  handled_on = *comm;
}

static int class_of(int code) {
  int class = -1;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return code == MPI_SUCCESS ? MPI_SUCCESS : class;
}

/* Whether a call that belongs to no object has failed so, and MPI_COMM_WORLD's handler knows it. */
static int is_handled(int code, int class) {
  const int right = class_of(code) == class && handled == class && handled_on == MPI_COMM_WORLD;
  handled = 0;
  return right;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Comm mine;
  MPI_Errhandler handler, of_world;
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Comm_create_errhandler(on_error, &of_world);
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(mine, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int class_added, code_added, last, *last_used, flag;
  MPI_Add_error_class(&class_added);
  MPI_Add_error_code(class_added, &code_added);
  MPI_Add_error_string(class_added, "a class of the program");
  MPI_Add_error_string(code_added, "out of cheese");
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last_used, &flag);
  CHECK(flag && *last_used >= code_added);
  int steps = 0, key, type_key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
  last = code_added;
  int* memory; /* allocated in the first epoch, freed in the last */
  CHECK(MPI_Alloc_mem(1000 * sizeof *memory, MPI_INFO_NULL, &memory) == MPI_SUCCESS);

  for (int s = 0; going_on(s, n); ++s) {
    int value = s, got[4];
    steps = s + 1;
    MPI_Status status;
    memory[s % 1000] = s;
    CHECK(class_of(MPI_Send(&value, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Send(&value, -1, MPI_INT, right, 0, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
    CHECK(class_of(MPI_Send(&value, 1, MPI_DATATYPE_NULL, right, 0, MPI_COMM_WORLD)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Bcast(&value, 1, MPI_INT, -7, MPI_COMM_WORLD)) == MPI_ERR_ROOT);
    CHECK(class_of(MPI_Comm_size(MPI_COMM_NULL, &value)) == MPI_ERR_COMM);
    /* Where an error belongs to no object, Open MPI 5.0 asks the handler of MPI_COMM_WORLD. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    CHECK(class_of(MPI_Type_size(MPI_DATATYPE_NULL, &value)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Group_size(MPI_GROUP_NULL, &value)) == MPI_ERR_GROUP);
    /* A handler of the program's own learns what the error is, as the caller does. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_world);
    CHECK(is_handled(MPI_Type_size(MPI_DATATYPE_NULL, &value), MPI_ERR_TYPE));
    CHECK(is_handled(MPI_Group_size(MPI_GROUP_NULL, &value), MPI_ERR_GROUP));
    CHECK(is_handled(MPI_Info_get_nkeys(MPI_INFO_NULL, &value), MPI_ERR_INFO));
    CHECK(is_handled(MPI_Info_set(hints, "", "empty"), MPI_ERR_INFO_KEY));
    CHECK(is_handled(MPI_Add_error_string(MPI_ERR_RANK, "not the program's own"), MPI_ERR_ARG));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    value = s;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm none = MPI_COMM_NULL;
    CHECK(class_of(MPI_Comm_free(&none)) == MPI_ERR_COMM);
    /* Attributes belong to something, MPI's own and the program's. */
    void* found;
    const int keys[2] = {MPI_TAG_UB, key};
    for (int i = 0; i < 2; ++i) {
      CHECK(class_of(MPI_Comm_get_attr(MPI_COMM_NULL, keys[i], &found, &flag)) == MPI_ERR_COMM);
      CHECK(class_of(MPI_Comm_set_attr(MPI_COMM_NULL, keys[i], &value)) == MPI_ERR_COMM);
      CHECK(class_of(MPI_Comm_delete_attr(MPI_COMM_NULL, keys[i])) == MPI_ERR_COMM);
    }
    CHECK(class_of(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL, &flag)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Type_get_attr(MPI_DATATYPE_NULL, type_key, &found, &flag)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Type_set_attr(MPI_DATATYPE_NULL, type_key, &value)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Type_delete_attr(MPI_DATATYPE_NULL, type_key)) == MPI_ERR_TYPE);
    MPI_Comm predefined[2] = {MPI_COMM_SELF, MPI_COMM_WORLD}; /* not to be freed, in an epoch as before */
    for (int i = 0; i < 2; ++i) {
      CHECK(class_of(MPI_Comm_free(&predefined[i])) == MPI_ERR_COMM);
      CHECK(predefined[i] == (i == 0 ? MPI_COMM_SELF : MPI_COMM_WORLD));
    }

    /* A message longer than the receive buffer is still consumed. */
    int four[4] = {rank, s, 3, 4};
    MPI_Request requests[2];
    MPI_Isend(four, 4, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[0]);
    CHECK(class_of(MPI_Recv(got, 2, MPI_INT, left, 1, MPI_COMM_WORLD, &status)) == MPI_ERR_TRUNCATE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Status statuses[2];
    MPI_Irecv(got, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(four, 4, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[1]);
    CHECK(class_of(MPI_Waitall(2, requests, statuses)) == MPI_ERR_IN_STATUS);
    CHECK(class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
    for (int i = 0; i < 2; ++i)
      if (requests[i] != MPI_REQUEST_NULL) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);

    handled = 0;
    MPI_Send(&value, 1, MPI_INT, size, 0, mine);
    CHECK(handled == MPI_ERR_RANK && handled_on == mine);
    MPI_Comm_call_errhandler(mine, code_added);
    CHECK(handled == class_added);
    /* A graph that can't be created is an error of its parent, whose handler it inherits otherwise. */
    MPI_Comm graph;
    handled = 0;
    CHECK(MPI_Dist_graph_create(mine, -1, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph) != MPI_SUCCESS);
    CHECK(handled != 0 && handled_on == mine);
    MPI_Dist_graph_create(mine, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Comm_call_errhandler(graph, MPI_ERR_TAG);
    CHECK(handled == MPI_ERR_TAG && handled_on == graph);
    MPI_Comm_free(&graph);
    CHECK(class_of(MPI_Dist_graph_create(MPI_COMM_NULL, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                         &graph)) == MPI_ERR_COMM);
    if (size == 2) {
      MPI_Comm inter;
      MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, right, 3, &inter);
      MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
      CHECK(class_of(MPI_Dist_graph_create(inter, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph)) ==
            MPI_ERR_COMM);
      MPI_Comm_free(&inter);
    }

    for (int i = 0; i < 300;
         ++i) { /* handlers created and freed repeatedly; the communicator's duplicate has its own */
      MPI_Comm copy, copy_of_copy;
      MPI_Errhandler brief;
      if (s != 0 && i > 2) break;
      MPI_Comm_dup(MPI_COMM_WORLD, &copy);
      MPI_Comm_create_errhandler(on_error, &brief);
      MPI_Comm_set_errhandler(copy, brief);
      MPI_Errhandler_free(&brief);
      MPI_Comm_dup(copy, &copy_of_copy);
      handled = 0;
      MPI_Comm_call_errhandler(copy, MPI_ERR_RANK);
      CHECK(handled == MPI_ERR_RANK && handled_on == copy);
      MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
      MPI_Comm_call_errhandler(copy_of_copy, MPI_ERR_TAG);
      CHECK(handled == MPI_ERR_TAG && handled_on == copy_of_copy);
      MPI_Comm_free(&copy);
      MPI_Comm_free(&copy_of_copy);
    }

    char text[MPI_MAX_ERROR_STRING];
    int length, class = -1;
    MPI_Error_string(code_added, text, &length);
    MPI_Error_class(code_added, &class);
    CHECK(!strcmp(text, "out of cheese") && class == class_added && last == code_added);
    MPI_Error_string(class_added, text, &length);
    CHECK(!strcmp(text, "a class of the program"));
    MPI_Errhandler now;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
    CHECK(now == MPI_ERRORS_RETURN);

    MPI_File file; /* files return errors by default */
    CHECK(class_of(MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file)) ==
          MPI_ERR_NO_SUCH_FILE);
    CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, NULL) != MPI_SUCCESS);
    edge();
  }
  for (int s = 0; s < steps && steps <= 1000; ++s) CHECK(memory[s] == s);
  MPI_Free_mem(memory);
  MPI_Comm_free(&mine);
  MPI_Info_free(&hints);
  MPI_Errhandler_free(&of_world);
  MPI_Finalize();
  printf("ok errors\n");
  return 0;
}
