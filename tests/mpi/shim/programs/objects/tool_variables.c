/* Reads a performance variable of communicators: how many messages of each peer nobody expects. */
#include "check.h"

int main(int argc, char** argv) {
  int provided, rank, size, n = supersteps(argc, argv);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  for (int s = 0; going_on(s, n); ++s) {
    MPI_T_pvar_session session;
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
    MPI_Comm comms[3] = {MPI_COMM_WORLD, MPI_COMM_SELF, half};
    for (int i = 0; i < 3; ++i) {
      int variable = -1;
      CHECK(MPI_T_pvar_get_index("pml_ob1_unexpected_msgq_length", MPI_T_PVAR_CLASS_SIZE, &variable) == MPI_SUCCESS);
      MPI_T_pvar_handle handle;
      int peers = -1, count = -1;
      MPI_Comm_size(comms[i], &peers);
      CHECK(MPI_T_pvar_handle_alloc(session, variable, &comms[i], &handle, &count) == MPI_SUCCESS && count == peers);
      unsigned waiting[64] = {0};
      CHECK(MPI_T_pvar_read(session, handle, waiting) == MPI_SUCCESS);
      for (int p = 0; p < peers; ++p) CHECK(waiting[p] <= 64);
      CHECK(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS);
    }
    CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS && MPI_T_finalize() == MPI_SUCCESS);
    edge();
  }
  MPI_Comm_free(&half);
  MPI_Finalize();
  printf("ok tool_variables\n");
  return 0;
}
