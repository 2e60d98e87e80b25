/* Arrays without an element, such as the neighbours of a rank that has none, and empty names, in every epoch. */
#include "check.h"

enum { kTypes = 5, kComms = 4 };

static int rank, other; /* of two ranks */

/* MPI sees nothing to start: there is nothing, or it doesn't know yet of what the program has started. */
static void requests(int s) {
  MPI_Request some[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, receive;
  int flag = 0, index = 0, count = 0, word = s, got = -1;
  CHECK(MPI_Startall(0, some) == MPI_SUCCESS && some[0] == MPI_REQUEST_NULL);
  CHECK(MPI_Waitall(0, some, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_Testall(0, some, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS && flag);
  CHECK(MPI_Waitany(0, some, &index, MPI_STATUS_IGNORE) == MPI_SUCCESS && index == MPI_UNDEFINED);
  CHECK(MPI_Testany(0, some, &index, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && index == MPI_UNDEFINED && flag);
  CHECK(MPI_Waitsome(0, some, &count, &index, MPI_STATUSES_IGNORE) == MPI_SUCCESS && count == MPI_UNDEFINED);
  CHECK(MPI_Testsome(0, some, &count, &index, MPI_STATUSES_IGNORE) == MPI_SUCCESS && count == MPI_UNDEFINED);
  MPI_Psend_init(&word, 1, 1, MPI_INT, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &some[0]);
  MPI_Precv_init(&got, 1, 1, MPI_INT, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  MPI_Start(&receive);
  CHECK(MPI_Startall(1, some) == MPI_SUCCESS);
  MPI_Pready(0, some[0]);
  MPI_Wait(&some[0], MPI_STATUS_IGNORE);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  CHECK(got == s);
  MPI_Request_free(&some[0]);
  MPI_Request_free(&receive);
}

/* Errors are MPI's own. */
#define REFUSED(call, with)           \
  do {                                \
    int class_of = MPI_SUCCESS;       \
    MPI_Error_class(call, &class_of); \
    CHECK(class_of == with);          \
  } while (0)

static void errors(void) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[2];
  int flag, index, count, indices[2];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  REFUSED(MPI_Startall(0, NULL), MPI_ERR_REQUEST);
  for (int i = 0; i < 2; ++i) {
    MPI_Request* const array = i == 0 ? NULL : requests;
    const int n = i == 0 ? 2 : -1, with = i == 0 ? MPI_ERR_REQUEST : MPI_ERR_ARG;
    REFUSED(MPI_Startall(n, array), with);
    REFUSED(MPI_Waitall(n, array, statuses), with);
    REFUSED(MPI_Testall(n, array, &flag, statuses), with);
    REFUSED(MPI_Waitany(n, array, &index, statuses), with);
    REFUSED(MPI_Testany(n, array, &index, &flag, statuses), with);
    REFUSED(MPI_Waitsome(n, array, &count, indices, statuses), with);
    REFUSED(MPI_Testsome(n, array, &count, indices, statuses), with);
  }
  REFUSED(MPI_Testall(2, requests, NULL, statuses), MPI_ERR_ARG);
  REFUSED(MPI_Waitany(2, requests, NULL, statuses), MPI_ERR_ARG);
  REFUSED(MPI_Testany(2, requests, &index, NULL, statuses), MPI_ERR_ARG);
  REFUSED(MPI_Waitsome(2, requests, NULL, indices, statuses), MPI_ERR_ARG);
  REFUSED(MPI_Testsome(2, requests, &count, NULL, statuses), MPI_ERR_ARG);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void make_comms(MPI_Comm* made) {
  int nothing[1] = {0}, index[2] = {0, 0};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, nothing, MPI_UNWEIGHTED, 0, nothing, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                 0, &made[0]);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, nothing, MPI_WEIGHTS_EMPTY, 0, nothing, MPI_WEIGHTS_EMPTY,
                                 MPI_INFO_NULL, 0, &made[1]);
  MPI_Graph_create(MPI_COMM_WORLD, 2, index, nothing, 0, &made[2]);
  MPI_Cart_create(MPI_COMM_WORLD, 0, nothing, nothing, 0, &made[3]); /* only rank 0 is in it */
}

static void neighbours(const MPI_Comm* comms) {
  int nothing[1] = {0}, word = 0, in = -1, out = -1, weighted = -1;
  MPI_Aint at[1] = {0};
  MPI_Datatype types[1] = {MPI_INT};
  MPI_Request request;
  MPI_Dist_graph_neighbors_count(comms[0], &in, &out, &weighted);
  CHECK(in == 0 && out == 0 && !weighted);
  MPI_Dist_graph_neighbors_count(comms[1], &in, &out, &weighted);
  CHECK(in == 0 && out == 0 && weighted);
  MPI_Graph_neighbors_count(comms[2], rank, &in);
  CHECK(in == 0);
  for (int c = 0; c < kComms; ++c) {
    if (comms[c] == MPI_COMM_NULL) continue;
    MPI_Neighbor_alltoallw(&word, nothing, at, types, &word, nothing, at, types, comms[c]);
    MPI_Neighbor_allgather(&word, 1, MPI_INT, &word, 1, MPI_INT, comms[c]);
    MPI_Ineighbor_alltoallw(&word, nothing, at, types, &word, nothing, at, types, comms[c], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Neighbor_alltoallw_init(&word, nothing, at, types, &word, nothing, at, types, comms[c], MPI_INFO_NULL,
                                &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  }
}

static void make_types(MPI_Datatype* made) {
  int nothing[1] = {0};
  MPI_Aint at[1] = {0};
  MPI_Datatype types[1] = {MPI_INT};
  MPI_Type_create_struct(0, nothing, at, types, &made[0]);
  MPI_Type_create_hindexed(0, nothing, at, MPI_INT, &made[1]);
  MPI_Type_indexed(0, nothing, nothing, MPI_INT, &made[2]);
  MPI_Type_create_hindexed_block(0, 1, at, MPI_INT, &made[3]);
  MPI_Type_create_indexed_block(0, 1, nothing, MPI_INT, &made[4]);
  for (int t = 0; t < kTypes; ++t) MPI_Type_commit(&made[t]);
}

static MPI_Win window;
static MPI_Datatype twin; /* Open MPI names it after the other */

static void take_names(void) {
  MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Type_dup(MPI_INT, &twin);
  MPI_Comm_set_name(MPI_COMM_WORLD, "");
  MPI_Win_set_name(window, "");
  MPI_Type_set_name(twin, "");
}

static void nameless(void) {
  char name[MPI_MAX_OBJECT_NAME] = "?";
  int length = -1;
  MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
  CHECK(length == 0 && name[0] == '\0');
  MPI_Win_get_name(window, name, &length);
  CHECK(length == 0 && name[0] == '\0');
  MPI_Type_get_name(twin, name, &length);
  CHECK(length == 0 && name[0] == '\0');
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = (rank + 1) % 2;
  MPI_Comm comms[kComms];
  MPI_Datatype types[kTypes];
  int size = -1;
  make_comms(comms);
  make_types(types);
  take_names();
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    requests(s);
    errors();
    neighbours(comms);
    nameless();
    for (int t = 0; t < kTypes; ++t) {
      MPI_Type_size(types[t], &size);
      CHECK(size == 0);
    }
    edge();
  }
  for (int c = 0; c < kComms; ++c)
    if (comms[c] != MPI_COMM_NULL) MPI_Comm_free(&comms[c]);
  for (int t = 0; t < kTypes; ++t) MPI_Type_free(&types[t]);
  MPI_Type_free(&twin);
  MPI_Win_free(&window);
  MPI_Finalize();
  printf("ok nothing\n");
  return 0;
}
