#include "sidecar/shim/library/file_components.h"

#include <cstddef>
#include <cstdlib>

#include "sidecar/shim/library/real.h"

namespace bsp::shim {
namespace {

void* allocate_buffer(void*, std::size_t bytes) { return std::malloc(bytes); }
void release_buffer(void*, void* buffer) { std::free(buffer); }

}  // namespace

// ompio has an allocator for data that it must convert. It frees that at the end of the session and never creates it
// again.
std::vector<std::pair<std::string_view, void*>> file_component_calls() {
  return {{"mca_common_ompio_alloc_buf", reinterpret_cast<void*>(allocate_buffer)},
          {"mca_common_ompio_release_buf", reinterpret_cast<void*>(release_buffer)}};
}

// ROMIO creates its operation and keyvals when the first file is opened, and shuts down when an attribute of
// MPI_COMM_SELF is deleted, as in MPI_Finalize. It isn't prepared to start again afterwards.
void end_romio() {
  auto* const keyval = static_cast<int*>(find_in_mpi("ADIO_Init_keyval"));
  if (keyval == nullptr || *keyval == MPI_KEYVAL_INVALID) return;
  real.Comm_delete_attr(pre.comm_self, *keyval);
  *keyval = MPI_KEYVAL_INVALID;
  if (auto* const freed = static_cast<void**>(find_in_mpi("ADIOI_Datarep_head"))) *freed = nullptr;
}

// ompio registers its progress function for nonblocking operations once and doesn't notice that the end of the
// session has unregistered it. Without this, such operations never complete in a later epoch.
void reset_ompio_progress() {
  if (auto* const registered = static_cast<bool*>(find_in_mpi("mca_common_ompio_progress_is_registered")))
    *registered = false;
}

}  // namespace bsp::shim
