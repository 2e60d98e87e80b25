/* MPI_THREAD_MULTIPLE: threads that are in step with nobody call what MPI answers from its own memory, also while the main
 * thread closes and opens an epoch: conversions of predefined handles, which begin and end every call of a Fortran
 * program, and the procedures without a handle. */
#include <pthread.h>

#include "check.h"

enum { kThreads = 2 };

static volatile int working = 1;

static void conversions(void) {
  CHECK(MPI_Type_f2c(MPI_Type_c2f(MPI_INT)) == MPI_INT && MPI_Type_f2c(MPI_Type_c2f(MPI_C_BOOL)) == MPI_C_BOOL);
  CHECK(MPI_Type_f2c(MPI_Type_c2f(MPI_DATATYPE_NULL)) == MPI_DATATYPE_NULL && MPI_Type_f2c(-1) == NULL);
  CHECK(MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM && MPI_Op_f2c(MPI_Op_c2f(MPI_NO_OP)) == MPI_NO_OP);
  CHECK(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
  CHECK(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_NULL)) == MPI_COMM_NULL);
  CHECK(MPI_Group_f2c(MPI_Group_c2f(MPI_GROUP_EMPTY)) == MPI_GROUP_EMPTY);
  CHECK(MPI_Info_f2c(MPI_Info_c2f(MPI_INFO_ENV)) == MPI_INFO_ENV);
  CHECK(MPI_Errhandler_f2c(MPI_Errhandler_c2f(MPI_ERRORS_ABORT)) == MPI_ERRORS_ABORT);
  CHECK(MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
  CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
  CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
  CHECK(MPI_Message_f2c(MPI_Message_c2f(MPI_MESSAGE_NO_PROC)) == MPI_MESSAGE_NO_PROC);
  CHECK(MPI_Session_f2c(MPI_Session_c2f(MPI_SESSION_NULL)) == MPI_SESSION_NULL);
}

static void without_handles(void) {
  int flag = -1, length = -1, sides[2] = {0, 0};
  char name[MPI_MAX_PROCESSOR_NAME];
  MPI_Aint at = 0;
  MPI_Status status, copy;
  MPI_Fint numbers[sizeof(MPI_Status) / sizeof(int)];
  MPI_F08_status f08;
  MPI_Get_address(sides, &at);
  CHECK((void*)at == sides);
  MPI_Dims_create(12, 2, sides);
  CHECK(sides[0] == 4 && sides[1] == 3);
  MPI_Get_processor_name(name, &length);
  CHECK(length > 0);
  memset(&status, 0, sizeof status);
  status.MPI_TAG = 7;
  MPI_Status_set_cancelled(&status, 1);
  MPI_Status_c2f(&status, numbers);
  MPI_Status_f2c(numbers, &copy);
  MPI_Test_cancelled(&copy, &flag);
  CHECK(flag == 1 && copy.MPI_TAG == 7);
  MPI_Status_c2f08(&status, &f08);
  MPI_Status_f082c(&f08, &copy);
  CHECK(copy.MPI_TAG == 7);
  MPI_Pcontrol(1);
}

static void* work(void* argument) {
  (void)argument;
  while (working) {
    conversions();
    without_handles();
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  pthread_t team[kThreads];
  for (int t = 0; t < kThreads; ++t) pthread_create(&team[t], NULL, work, NULL);
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) edge();
  working = 0;
  for (int t = 0; t < kThreads; ++t) pthread_join(team[t], NULL);
  MPI_Finalize();
  printf("ok local_calls\n");
  return 0;
}
