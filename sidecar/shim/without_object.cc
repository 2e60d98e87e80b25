#include "sidecar/shim/without_object.h"

#include <cstdarg>

#include "sidecar/shim/handles.h"
#include "sidecar/shim/message.h"

namespace bsp::shim {
namespace {

using Handler = void (*)(MPI_Comm*, int*, ...);

void on_error_without_object(MPI_Comm*, int* code, ...) {
  va_list arguments;
  va_start(arguments, code);
  const char* where = va_arg(arguments, const char*);
  va_end(arguments);
  const auto* as_mpi3 = static_cast<const bool*>(find_in_mpi("ompi_mpi_compat_mpi3"));
  const MPI_Comm comm = (as_mpi3 != nullptr && *as_mpi3 ? world : self).real;
  MPI_Errhandler handler = nullptr;
  const bool open = comm != nullptr && comm != pre.comm_null && real.Comm_get_errhandler(comm, &handler) == MPI_SUCCESS;
  // Open MPI passes such a handler the place of the error, not its code. Fatal handlers print it themselves.
  if (!open || handler == pre.errors_are_fatal || handler == pre.errors_abort) {
    using Abort = void (*)(MPI_Comm*, int*, ...);
    if (void* fatal = find_in_mpi("ompi_mpi_errors_are_fatal_comm_handler"))
      reinterpret_cast<Abort>(fatal)(nullptr, nullptr, where);
    die("an MPI error in %s, on no object with an error handler", where != nullptr ? where : "MPI");
  }
  real.Comm_call_errhandler(comm, MPI_ERR_OTHER);
}

}  // namespace

void route_errors_without_object() {
  if (void* variable = find_in_mpi("ompi_initial_error_handler"))
    *static_cast<Handler*>(variable) = on_error_without_object;
}

}  // namespace bsp::shim
