// MPI_Init, MPI_Finalize and their queries.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "crds/refusal.h"
#include "sidecar/ring/ring_access.h"
#include "sidecar/shim/epoch/blockers.h"
#include "sidecar/shim/epoch/edges.h"
#include "sidecar/shim/epoch/epoch.h"
#include "sidecar/shim/epoch/reports.h"
#include "sidecar/shim/handles/attributes.h"
#include "sidecar/shim/handles/error_codes.h"
#include "sidecar/shim/handles/fortran.h"
#include "sidecar/shim/handles/without_object.h"
#include "sidecar/shim/library/graceful_close.h"
#include "sidecar/shim/library/pmix_version.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/objects/files.h"
#include "sidecar/shim/objects/fortran_handles.h"
#include "sidecar/shim/objects/recipes.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/moved_clock.h"
#include "sidecar/shim/process/run_dir.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI
namespace names = bsp::names;

namespace {

pthread_t main_thread;
bool by_session = false;        // MPI is open because the program has a session, not because it called MPI_Init
bool left_to_sessions = false;  // the program has called MPI_Finalize while it had a session
std::mutex sessions_lock;       // threads may open and close sessions concurrently; one opens MPI, one closes it

void describe_world() {
  real.Comm_size(world.real, &state.size);
  real.Comm_rank(world.real, &state.rank);
  describe(world);
  describe(self);
  for (Counters::ByRank* counts : {&counters.sent_to, &counters.received_from})
    *counts = std::make_unique<std::atomic<std::uint64_t>[]>(static_cast<std::size_t>(state.size));
}

// Started by mpirun or as a singleton, without bsp-init: plain MPI, only the handles are virtual.
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

[[noreturn]] void die_on_second_open() {
  die("the program opens MPI again after closing it; under bsp-operator a program can open MPI only once");
}

int init(int* argc, char*** argv, int required, int* provided) {
  require_open_mpi_5();
  require_known_fortran();
  if (state.epochs && state.finalized) die_on_second_open();
  if (state.initialized && !by_session) {
    say("the program calls MPI_Init twice");
    return MPI_ERR_OTHER;
  }
  required = std::clamp<int>(required, MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE);
  if (state.initialized) {  // by a session of the program, see MPI_Session_init
    by_session = false;
    *provided = state.thread_level;
    return MPI_SUCCESS;
  }
  main_thread = pthread_self();
  measure_this_thread();
  int rc = MPI_SUCCESS;
  if (has_run_dir()) {
    require_known_pmix();
    state.epochs = true;
    set_up_edges();
    const std::uint64_t started = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    open_first_epoch(required);
    report_edge();
    report_mpi();
    describe_world();
    note_predefined_numbers();
    repeat_error_codes();
    *provided = required;
    state.initialized = true;
    report_open(started, cpu);
  } else {
    rc = init_plain(argc, argv, required, provided);
    state.initialized = rc == MPI_SUCCESS;
    if (state.initialized) {
      note_predefined_numbers();
      repeat_error_codes();
    }
  }
  return rc;
}

void free_everything() {
  delete_attributes(pre.comm_self);  // MPI 4.1, 11.2.4: MPI still works in these callbacks
  close_files_left_open();
  ignore_link_errors();
  real.Barrier(private_world);  // no rank leaves while others still receive messages from it
  repeat_for_each_link([] { real.Barrier(private_world); });
  delete_attributes(pre.comm_world);
  save_objects();
}

void finalize_epochs() {
  free_everything();
  close_epoch();
  restore_infos();
  state.finalized = true;
  edge_call = EdgeCall::kNone;
  BSP_RING_STORE(state.ring->state, static_cast<std::uint32_t>(BSP_RANK_FINALIZED));
}

int thread_level(MPI_Info info) {
  static const char* const kLevels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                                        "MPI_THREAD_MULTIPLE"};
  char text[32] = "";
  int found = 0;
  if (info != pre.info_null) real.Info_get(to_real(info), "thread_level", sizeof text - 1, text, &found);
  for (int level = MPI_THREAD_FUNNELED; level <= MPI_THREAD_MULTIPLE; ++level)
    if (std::strcmp(text, kLevels[level]) == 0) return level;
  return MPI_THREAD_SINGLE;
}

}  // namespace

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  int provided = 0;
  const char* user =
      std::getenv("OMPI_MPI_THREAD_LEVEL");  // Open MPI's way to enable threads in a program without MPI_Init_thread
  return init(argc, argv, user != nullptr ? std::atoi(user) : MPI_THREAD_SINGLE, &provided);
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return init(argc, argv, required, provided);
}

int MPI_Finalize(void) {
  if (!state.initialized || state.finalized || left_to_sessions) return real.Finalize();  // lets MPI report the error
  if (!state.epochs) {
    delete_attributes(pre.comm_self);
    delete_attributes(pre.comm_world);
    state.finalized = true;
    return real.Finalize();
  }
  std::lock_guard guard(sessions_lock);
  if (program_sessions > 0) {  // their objects remain valid (MPI 4.1, 11.3.1)
    delete_attributes(pre.comm_self);
    delete_attributes(pre.comm_world);
    left_to_sessions = true;
    return MPI_SUCCESS;
  }
  finalize_epochs();
  return MPI_SUCCESS;
}

// A program may use only sessions. They find the job only while an epoch is open: the first session opens it, the
// last one closes it, also if the program has called MPI_Finalize before.
int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  std::lock_guard guard(sessions_lock);
  if (!state.initialized && has_run_dir()) {
    require_open_mpi_5();
    int provided = 0;
    if (const int rc = init(nullptr, nullptr, thread_level(info), &provided); rc != MPI_SUCCESS) return rc;
    by_session = true;
  } else if (state.epochs && state.finalized) {
    die_on_second_open();
  }
  Call call;
  const int rc = real.Session_init(to_real(info), to_real(errhandler), session);
  if (rc == MPI_SUCCESS) ++program_sessions;
  return rc;
}

int MPI_Session_finalize(MPI_Session* session) {
  std::lock_guard guard(sessions_lock);
  int rc = MPI_SUCCESS;
  {
    Call call;
    rc = real.Session_finalize(session);
    if (rc == MPI_SUCCESS) --program_sessions;
  }
  if (rc == MPI_SUCCESS && (by_session || left_to_sessions) && program_sessions == 0) finalize_epochs();
  return rc;
}

int MPI_Initialized(int* flag) {
  *flag = state.initialized && !by_session ? 1 : 0;
  return MPI_SUCCESS;
}

int MPI_Finalized(int* flag) {
  *flag = (state.finalized || left_to_sessions) && !by_session ? 1 : 0;
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
  // After an error of MPI's the program may only follow a lost rank.
  (has_raised_error() ? say : say_verdict)("%s(%d)", names::kAborted.data(), errorcode);
  std::fflush(nullptr);
  _exit((errorcode & 0xff) != 0 ? errorcode & 0xff : 1);  // the operator ends the other ranks
}

double MPI_Wtime(void) { return wtime(); }
double MPI_Wtick(void) { return 1e-9; }

}  // extern "C"
