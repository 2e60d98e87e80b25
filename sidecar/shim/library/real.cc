#include "sidecar/shim/library/real.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "sidecar/shim/library/internal_calls.h"
#include "sidecar/shim/library/symbol_table.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {

RealFunctions real;
Predefined pre;

namespace {

void* mpi_library = nullptr;
int major = 0;
int minor = 0;
int patch = 0;

int missing_function() { die("the program calls an MPI function that its MPI library does not provide"); }

template <class Handle>
void find_object(Handle& handle, const char* symbol) {
  handle = static_cast<Handle>(find_in_mpi(symbol));
  if (handle == nullptr) refuse("the MPI library has no %s: Open MPI >= 5 is required", symbol);
}

void find_predefined() {
  find_object(pre.comm_world, "ompi_mpi_comm_world");
  find_object(pre.comm_self, "ompi_mpi_comm_self");
  find_object(pre.comm_null, "ompi_mpi_comm_null");
  find_object(pre.group_null, "ompi_mpi_group_null");
  find_object(pre.group_empty, "ompi_mpi_group_empty");
  find_object(pre.datatype_null, "ompi_mpi_datatype_null");
  find_object(pre.byte, "ompi_mpi_byte");
  find_object(pre.int32, "ompi_mpi_int32_t");
  find_object(pre.int64, "ompi_mpi_int64_t");
  find_object(pre.op_null, "ompi_mpi_op_null");
  find_object(pre.sum, "ompi_mpi_op_sum");
  find_object(pre.min, "ompi_mpi_op_min");
  find_object(pre.max, "ompi_mpi_op_max");
  find_object(pre.request_null, "ompi_request_null");
  find_object(pre.info_null, "ompi_mpi_info_null");
  find_object(pre.info_env, "ompi_mpi_info_env");
  find_object(pre.errhandler_null, "ompi_mpi_errhandler_null");
  find_object(pre.errors_are_fatal, "ompi_mpi_errors_are_fatal");
  find_object(pre.errors_abort, "ompi_mpi_errors_abort");
  find_object(pre.errors_return, "ompi_mpi_errors_return");
  find_object(pre.win_null, "ompi_mpi_win_null");
  find_object(pre.file_null, "ompi_mpi_file_null");
  find_object(pre.message_null, "ompi_message_null");
  find_object(pre.message_no_proc, "ompi_message_no_proc");
}

bool look_for_mpi() {
  // Searched by name too, in case it was loaded without RTLD_GLOBAL (by a Python module, for example).
  mpi_library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD);
  if (find_real("PMPI_Init") == nullptr) return false;
#define BSP_FIND(name)                                        \
  if (void* found = find_real("PMPI_" #name))                 \
    real.name = reinterpret_cast<decltype(real.name)>(found); \
  else                                                        \
    real.name = reinterpret_cast<decltype(real.name)>(reinterpret_cast<void*>(missing_function));
  BSP_REAL_FUNCTIONS(BSP_FIND)
#undef BSP_FIND
  if (find_in_mpi("ompi_mpi_comm_world") != nullptr) find_predefined();
  bind_internal_calls();
  redirect_symbols();
  return true;
}

}  // namespace

void* find_real(const char* symbol) {
  if (void* found = redirected(symbol)) return found;
  if (mpi_library != nullptr)
    if (void* found = dlsym(mpi_library, symbol)) return found;
  return dlsym(RTLD_NEXT, symbol);
}

// The search must include the executable: it may hold the copy of the data that all libraries use.
void* find_in_mpi(const char* symbol) {
  if (void* found = dlsym(RTLD_DEFAULT, symbol)) return found;
  return mpi_library != nullptr ? dlsym(mpi_library, symbol) : nullptr;
}

bool load_real(Lookup lookup) {
  if (state.loaded) return true;
  static std::recursive_mutex lock;
  static bool looking = false;  // this very thread: dlsym leads here again
  std::unique_lock guard(lock, std::try_to_lock);
  if (!guard && lookup == Lookup::kUnlessBusy) return false;
  if (!guard) guard.lock();
  if (state.loaded || looking) return state.loaded;
  looking = true;
  state.loaded = look_for_mpi();
  looking = false;
  return state.loaded;
}

void must(int rc, const char* what) {
  if (rc == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  real.Error_string(rc, text, &length);
  die_between_epochs(what, text);
}

void require_open_mpi_5() {
  if (!load_real()) refuse("the program's MPI library was not found: the program must link it dynamically");
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "an unknown library";
  int length = 0;
  if (void* get = find_real("PMPI_Get_library_version")) reinterpret_cast<int (*)(char*, int*)>(get)(version, &length);
  const char* found = std::strstr(version, "Open MPI v");
  if (found == nullptr || std::sscanf(found, "Open MPI v%d.%d.%d", &major, &minor, &patch) < 2 || major < 5) {
    version[std::strcspn(version, ",\n")] = '\0';
    refuse("the program's MPI library is \"%s\"; Open MPI >= 5 is required (build the image with it)", version);
  }
}

int open_mpi_major() { return major; }
int open_mpi_minor() { return minor; }
int open_mpi_patch() { return patch; }

// Filling the table before main() lets every wrapper call through it without a check.
__attribute__((constructor)) static void load_early() { load_real(); }

}  // namespace bsp::shim
