// MPI_Alloc_mem: plain memory, so that it outlives the epoch. Over TCP, Open MPI's own allocation is no faster, and
// the library tracks it only while that session is open.
#include "sidecar/shim/objects/memory.h"

#include <cstdlib>

#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/measure/measure.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

constexpr std::size_t kCacheLine = 64;

// MPI 4.1, section 9.2: mpi_minimum_memory_alignment, a power of two.
std::size_t alignment(MPI_Info info) {
  char text[32] = "";
  int found = 0;
  if (info != pre.info_null)
    real.Info_get(to_real(info), "mpi_minimum_memory_alignment", sizeof text - 1, text, &found);
  const std::size_t asked = found ? std::strtoull(text, nullptr, 10) : 0;
  return asked > kCacheLine && (asked & (asked - 1)) == 0 ? asked : kCacheLine;
}

}  // namespace

int bsp::shim::allocate_memory(MPI_Aint size, MPI_Info info, void** memory) {
  if (size < 0) return MPI_ERR_SIZE;
  return posix_memalign(memory, alignment(info), static_cast<std::size_t>(size)) == 0 ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

extern "C" {

int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
  Call call;
  if (!state.epochs) return real.Alloc_mem(size, to_real(info), baseptr);
  void* memory = nullptr;
  const int rc = allocate_memory(size, info, &memory);
  if (rc != MPI_SUCCESS)
    real.Comm_call_errhandler(self.real, rc);
  else
    *static_cast<void**>(baseptr) = memory;
  return rc;
}

int MPI_Free_mem(void* base) {
  Call call;
  if (!state.epochs) return real.Free_mem(base);
  std::free(base);
  return MPI_SUCCESS;
}

}  // extern "C"
