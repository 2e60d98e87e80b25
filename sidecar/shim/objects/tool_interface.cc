// The tool interface: who uses it, and performance variables that are bound to an MPI object (MPI 4.1, 15.3).
#include "sidecar/shim/objects/tool_interface.h"

#include <atomic>

#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/messages/requests.h"
#include "sidecar/shim/process/export.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

std::atomic<int> users{0};  // calls of MPI_T_init_thread less those of MPI_T_finalize

template <class Function>
Function* in_mpi(const char* name, Function*) {
  return reinterpret_cast<Function*>(find_real(name));
}

// MPI_T_BIND_…; that of no object if there is no such variable.
int binding_of(int variable) {
  int name = 0, description = 0, verbosity = 0, kind = 0, bind = MPI_T_BIND_NO_OBJECT, flags[3];
  MPI_Datatype type = nullptr;
  MPI_T_enum values = nullptr;
  auto* get = in_mpi("PMPI_T_pvar_get_info", &MPI_T_pvar_get_info);
  const int rc = get(variable, nullptr, &name, &verbosity, &kind, &type, &values, nullptr, &description, &bind,
                     &flags[0], &flags[1], &flags[2]);
  return rc == MPI_SUCCESS ? bind : MPI_T_BIND_NO_OBJECT;
}

template <class Handle>
void* real_of(void* object) {
  return to_real(*static_cast<Handle*>(object));
}

// What MPI has behind the handle at `object`.
void* real_object(int bind, void* object) {
  switch (bind) {
    case MPI_T_BIND_MPI_COMM:
      return real_of<MPI_Comm>(object);
    case MPI_T_BIND_MPI_DATATYPE:
      return real_of<MPI_Datatype>(object);
    case MPI_T_BIND_MPI_ERRHANDLER:
      return real_of<MPI_Errhandler>(object);
    case MPI_T_BIND_MPI_FILE:
      return real_of<MPI_File>(object);
    case MPI_T_BIND_MPI_GROUP:
      return real_of<MPI_Group>(object);
    case MPI_T_BIND_MPI_OP:
      return real_of<MPI_Op>(object);
    case MPI_T_BIND_MPI_REQUEST:
      return real_of<MPI_Request>(object);
    case MPI_T_BIND_MPI_WIN:
      return real_of<MPI_Win>(object);
    case MPI_T_BIND_MPI_INFO:
      return real_of<MPI_Info>(object);
    default:
      return *static_cast<void**>(object);
  }
}

}  // namespace

namespace bsp::shim {

std::string tools_blocker() { return users > 0 ? "MPI's tool interface (MPI_T_init_thread)" : ""; }

}  // namespace bsp::shim

extern "C" {

BSP_EXPORT int MPI_T_init_thread(int required, int* provided) {
  Call call;
  const int rc = in_mpi("PMPI_T_init_thread", &MPI_T_init_thread)(required, provided);
  if (rc == MPI_SUCCESS) ++users;
  return rc;
}

BSP_EXPORT int MPI_T_finalize(void) {
  Call call;
  const int rc = in_mpi("PMPI_T_finalize", &MPI_T_finalize)();
  if (rc == MPI_SUCCESS) --users;
  return rc;
}

// Reads the handle at `object` at once, and binds the variable to that object.
BSP_EXPORT int MPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int variable, void* object,
                                       MPI_T_pvar_handle* handle, int* count) {
  Call call;
  auto* allocate = in_mpi("PMPI_T_pvar_handle_alloc", &MPI_T_pvar_handle_alloc);
  const int bind = object != nullptr ? binding_of(variable) : MPI_T_BIND_NO_OBJECT;
  if (bind == MPI_T_BIND_NO_OBJECT) return allocate(session, variable, object, handle, count);
  void* real_handle = real_object(bind, object);
  return allocate(session, variable, &real_handle, handle, count);
}

}  // extern "C"
