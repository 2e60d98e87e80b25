#include "sidecar/shim/handles/fortran.h"

#include <dlfcn.h>

#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/process/descriptors.h"
#include "sidecar/shim/process/message.h"

namespace bsp::shim {

std::atomic<bool> mpi_numbers_types{false};
thread_local FromFortran from_fortran;

namespace {

constexpr int kKnownMajor = 5;
constexpr int kKnownMinor = 0;

// A generalised request of a Fortran program: calls from MPI with C arguments are forwarded with Fortran arguments.
struct Generalised {
  using Query = void(MPI_Aint* extra, MPI_Fint* status, MPI_Fint* error);
  using Free = void(MPI_Aint* extra, MPI_Fint* error);
  using Cancel = void(MPI_Aint* extra, MPI_Fint* complete, MPI_Fint* error);
  Query* query;
  Free* free;
  Cancel* cancel;
  MPI_Aint* extra;  // the program's variable: what the functions write there is for it
};

int query_in_fortran(void* state, MPI_Status* status) {
  auto& request = *static_cast<Generalised*>(state);
  MPI_Fint numbers[sizeof(MPI_Status) / sizeof(int)] = {};
  MPI_Fint error = MPI_SUCCESS;
  real.Status_c2f(status, numbers);
  {
    const InProgram guard;
    request.query(request.extra, numbers, &error);
  }
  real.Status_f2c(numbers, status);
  return error;
}

int free_in_fortran(void* state) {
  auto* const request = static_cast<Generalised*>(state);
  MPI_Fint error = MPI_SUCCESS;
  {
    const InProgram guard;
    request->free(request->extra, &error);
  }
  delete request;
  return error;
}

int cancel_in_fortran(void* state, int complete) {
  auto& request = *static_cast<Generalised*>(state);
  MPI_Fint logical = complete != 0 ? 1 : 0;
  MPI_Fint error = MPI_SUCCESS;
  const InProgram guard;
  request.cancel(request.extra, &logical, &error);
  return error;
}

}  // namespace

bool has_fortran() {
  static const bool found = dlsym(RTLD_DEFAULT, "ompi_comm_rank_f") != nullptr;
  return found;
}

void require_known_fortran() {
  if (!has_fortran() || (open_mpi_major() == kKnownMajor && open_mpi_minor() == kKnownMinor)) return;
  refuse(
      "this is a Fortran MPI program with Open MPI %d.%d: this version of bsp-operator supports the Fortran bindings "
      "of Open MPI %d.%d only (build the image with it)",
      open_mpi_major(), open_mpi_minor(), kKnownMajor, kKnownMinor);
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

extern "C" {

BSP_EXPORT void ompi_grequest_start_f(Generalised::Query* query, Generalised::Free* free, Generalised::Cancel* cancel,
                                      MPI_Aint* extra, MPI_Fint* request, MPI_Fint* error) {
  MPI_Request made = nullptr;
  const int rc = MPI_Grequest_start(query_in_fortran, free_in_fortran, cancel_in_fortran,
                                    new Generalised{query, free, cancel, extra}, &made);
  if (error != nullptr) *error = rc;
  if (rc == MPI_SUCCESS) *request = MPI_Request_c2f(made);
}
BSP_FORTRAN_NAMES(ompi_grequest_start_f, grequest_start, GREQUEST_START)

// OPAL's strings pass through unchanged.
BSP_EXPORT int ompi_info_get(MPI_Info info, const char* key, void** value, int* flag) {
  using Get = int (*)(MPI_Info, const char*, void**, int*);
  static const auto get = reinterpret_cast<Get>(find_real("ompi_info_get"));
  const Call call;
  return get(to_real(info), key, value, flag);
}

BSP_EXPORT int ompi_info_get_valuelen(MPI_Info info, const char* key, int* length, int* flag) {
  using Get = int (*)(MPI_Info, const char*, int*, int*);
  static const auto get = reinterpret_cast<Get>(find_real("ompi_info_get_valuelen"));
  const Call call;
  return get(to_real(info), key, length, flag);
}

BSP_EXPORT int ompi_info_get_nthkey(MPI_Info info, int n, void** key) {
  using Get = int (*)(MPI_Info, int, void**);
  static const auto get = reinterpret_cast<Get>(find_real("ompi_info_get_nthkey"));
  const Call call;
  return get(to_real(info), n, key);
}

}  // extern "C"
