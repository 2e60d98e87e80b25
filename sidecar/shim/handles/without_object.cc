#include "sidecar/shim/handles/without_object.h"

#include <atomic>
#include <cstdarg>

#include "sidecar/shim/handles/errors_after.h"
#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/process/message.h"

namespace bsp::shim {
namespace {

using Handler = void (*)(MPI_Comm*, int*, ...);

// The communicator that such errors are raised on; nullptr while there is none.
MPI_Comm comm_of_errors() {
  const auto* as_mpi3 = static_cast<const bool*>(find_in_mpi("ompi_mpi_compat_mpi3"));
  const MPI_Comm comm = (as_mpi3 != nullptr && *as_mpi3 ? world : self).real;
  return comm != pre.comm_null ? comm : nullptr;
}

// Open MPI passes such a handler the place of the error, not its code. Reached only where Open MPI was linked so that its
// calls of itself can't be replaced (-Bsymbolic).
void on_error_without_object(MPI_Comm*, int* code, ...) {
  va_list arguments;
  va_start(arguments, code);
  const char* where = va_arg(arguments, const char*);
  va_end(arguments);
  const MPI_Comm comm = comm_of_errors();
  MPI_Errhandler handler = nullptr;
  const bool open = comm != nullptr && real.Comm_get_errhandler(comm, &handler) == MPI_SUCCESS;
  // Fatal handlers print the place themselves.
  if (!open || handler == pre.errors_are_fatal || handler == pre.errors_abort) {
    using Abort = void (*)(MPI_Comm*, int*, ...);
    if (void* fatal = find_in_mpi("ompi_mpi_errors_are_fatal_comm_handler"))
      reinterpret_cast<Abort>(fatal)(nullptr, nullptr, where);
    die("an MPI error in %s, on no object with an error handler", where != nullptr ? where : "MPI");
  }
  real.Errhandler_free(&handler);
  real.Comm_call_errhandler(comm, MPI_ERR_OTHER);
}

}  // namespace

void route_errors_without_object() {
  if (void* variable = find_in_mpi("ompi_initial_error_handler"))
    *static_cast<Handler*>(variable) = on_error_without_object;
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

static std::atomic<bool> has_raised{false};

bool bsp::shim::has_raised_error() { return has_raised; }

int ompi_errhandler_invoke(MPI_Errhandler handler, void* object, int kind, int code, const char* where) {
  static const auto next = reinterpret_cast<decltype(&ompi_errhandler_invoke)>(find_real("ompi_errhandler_invoke"));
  has_raised = true;
  if (ErrorsAfter::keep(handler, object, kind, code, where)) return code;
  const MPI_Comm comm = handler == nullptr ? comm_of_errors() : nullptr;
  MPI_Errhandler of_comm = nullptr;
  if (comm == nullptr || real.Comm_get_errhandler(comm, &of_comm) != MPI_SUCCESS)
    return next(handler, object, kind, code, where);
  constexpr int kOfCommunicator = 1;  // ompi_errhandler_type_t
  const int returned = next(of_comm, comm, kOfCommunicator, code, where);
  real.Errhandler_free(&of_comm);
  return returned;
}
