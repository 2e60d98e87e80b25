#include "sidecar/shim/file_components.h"

#include "sidecar/shim/real.h"

namespace bsp::shim {

// ROMIO makes its operation and its keyvals when the first file is opened, and ends when an attribute of MPI_COMM_SELF is deleted,
// as MPI_Finalize does. It doesn't expect to begin anew after that.
void end_romio() {
  auto* const keyval = static_cast<int*>(find_in_mpi("ADIO_Init_keyval"));
  if (keyval == nullptr || *keyval == MPI_KEYVAL_INVALID) return;
  real.Comm_delete_attr(pre.comm_self, *keyval);
  *keyval = MPI_KEYVAL_INVALID;
  if (auto* const freed = static_cast<void**>(find_in_mpi("ADIOI_Datarep_head"))) *freed = nullptr;
}

// ompio asks for the progress of nonblocking operations once, and doesn't know that the end of the session has taken that back:
// without this such an operation never completes in a later epoch.
void forget_progress_of_files() {
  if (auto* const registered = static_cast<bool*>(find_in_mpi("mca_common_ompio_progress_is_registered")))
    *registered = false;
}

}  // namespace bsp::shim
