// A program that leaves MPI out of an error handler, by an exception or by longjmp. With "threads", other threads do so and
// end. Rank 0 computes, the others wait for it, which must be seen.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <thread>

#include "check.h"

namespace {

thread_local std::jmp_buf back;
bool by_exception = false;

void leave(MPI_Comm*, int* code, ...) {
  int error = 0;
  MPI_Error_class(*code, &error);
  if (by_exception) throw error;
  std::longjmp(back, error);
}

int error_of_a_send(MPI_Comm comm) {
  int nothing = 0, size = 0;
  MPI_Comm_size(comm, &size);
  if (!by_exception) {
    if (const int error = setjmp(back); error != 0) return error;  // NOLINT: this is what is tested
  }
  try {
    MPI_Send(&nothing, 1, MPI_INT, size, 0, comm);
  } catch (int error) {
    return error;
  }
  return MPI_SUCCESS;
}

void compute(double seconds) {
  timespec now{};
  const auto cpu = [&] {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  for (const double end = cpu() + seconds; cpu() < end;) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int n = supersteps(argc, argv);
  const bool threads = argc > 2 && std::strcmp(argv[2], "threads") == 0;
  by_exception = argc > 2 && std::strcmp(argv[2], "exception") == 0;
  int provided = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm mine;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  MPI_Comm_create_errhandler(leave, &handler);
  MPI_Comm_set_errhandler(mine, handler);
  for (int s = 0; going_on(s, n); ++s) {
    if (threads)
      std::thread([&] { CHECK(error_of_a_send(mine) == MPI_ERR_RANK); }).join();
    else
      CHECK(error_of_a_send(mine) == MPI_ERR_RANK);
    if (rank == 0) compute(0.01);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&mine);
  MPI_Finalize();
  std::printf("ok leaving\n");
}
