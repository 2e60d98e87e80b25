// MPI_Init, MPI_Finalize and what the program can ask about them.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "sidecar/ring/ring_access.h"
#include "sidecar/shim/attributes.h"
#include "sidecar/shim/counters.h"
#include "sidecar/shim/epoch.h"
#include "sidecar/shim/gate.h"
#include "sidecar/shim/measure.h"
#include "sidecar/shim/message.h"
#include "sidecar/shim/moved_clock.h"
#include "sidecar/shim/recipes.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

pthread_t main_thread;

void describe_world() {
  real.Comm_size(world.real, &state.size);
  real.Comm_rank(world.real, &state.rank);
  describe(world);
  describe(self);
  counters.sent_to =
      std::make_unique<std::atomic<std::uint64_t>[]>(static_cast<std::size_t>(state.size));
}

// Run by mpirun or alone, without bsp-init: MPI as ever, only the handles are ours.
int init_plain(int* argc, char*** argv, int required, int* provided) {
  const int rc = real.Init_thread(argc, argv, required, provided);
  if (rc != MPI_SUCCESS) return rc;
  state.thread_level = *provided;
  state.multiple = *provided == MPI_THREAD_MULTIPLE;
  world.real = pre.comm_world;
  self.real = pre.comm_self;
  describe_world();
  return rc;
}

std::uint64_t cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

int init(int* argc, char*** argv, int required, int* provided) {
  require_open_mpi_5();
  if (state.initialized) {
    say("the program calls MPI_Init twice");
    return MPI_ERR_OTHER;
  }
  main_thread = pthread_self();
  thread_state.measured = true;
  int rc = MPI_SUCCESS;
  if (has_run_dir()) {
    state.epochs = true;
    set_up_edges();
    const std::uint64_t started = realtime_ns();
    const std::uint64_t cpu = cpu_ns();
    open_first_epoch(required);
    describe_world();
    *provided = required;
    state.initialized = true;
    report_open(started, cpu);
  } else {
    rc = init_plain(argc, argv, required, provided);
    state.initialized = rc == MPI_SUCCESS;
  }
  return rc;
}

void free_everything() {
  delete_attributes(pre.comm_self);  // MPI 4.1, 11.2.4: these callbacks see a working MPI
  real.Barrier(world.real);          // nobody leaves while others still take messages from it
  delete_attributes(pre.comm_world);
  take_objects_down();
}

}  // namespace

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  int provided = 0;
  return init(argc, argv, MPI_THREAD_SINGLE, &provided);
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return init(argc, argv, required, provided);
}

int MPI_Finalize(void) {
  if (!state.initialized || state.finalized) return real.Finalize();  // MPI's own complaint
  if (!state.epochs) {
    delete_attributes(pre.comm_self);
    delete_attributes(pre.comm_world);
    state.finalized = true;
    return real.Finalize();
  }
  free_everything();
  close_epoch();
  state.finalized = true;
  edge_call = EdgeCall::kNone;
  BSP_RING_STORE(state.ring->state, static_cast<std::uint32_t>(BSP_RANK_FINALIZED));
  return MPI_SUCCESS;
}

int MPI_Initialized(int* flag) {
  *flag = state.initialized ? 1 : 0;
  return MPI_SUCCESS;
}

int MPI_Finalized(int* flag) {
  *flag = state.finalized ? 1 : 0;
  return MPI_SUCCESS;
}

int MPI_Query_thread(int* provided) {
  *provided = state.thread_level;
  return MPI_SUCCESS;
}

int MPI_Is_thread_main(int* flag) {
  *flag = pthread_equal(main_thread, pthread_self()) ? 1 : 0;
  return MPI_SUCCESS;
}

int MPI_Abort(MPI_Comm comm, int errorcode) {
  if (!state.epochs) return real.Abort(to_real(comm), errorcode);
  say("the program called MPI_Abort(%d)", errorcode);
  std::fflush(nullptr);
  _exit((errorcode & 0xff) != 0 ? errorcode & 0xff : 1);  // the operator ends the other ranks
}

double MPI_Wtime(void) { return wtime(); }
double MPI_Wtick(void) { return 1e-9; }

// Fortran programs go through libmpi_mpifh, which knows nothing of epochs: better a clear end now than
// every rank alone in a world of one.
#define BSP_FORTRAN_INIT(name)                                                              \
  __attribute__((visibility("default"))) void name(void) {                                  \
    if (has_run_dir())                                                                      \
      die("this is a Fortran MPI program: only C and C++ programs run in MPI epochs so far"); \
    die("a Fortran MPI program can't run with libbspmpi.so preloaded");                     \
  }
BSP_FORTRAN_INIT(mpi_init_)
BSP_FORTRAN_INIT(mpi_init_thread_)
BSP_FORTRAN_INIT(mpi_init_f08_)
BSP_FORTRAN_INIT(mpi_init_thread_f08_)

}  // extern "C"
