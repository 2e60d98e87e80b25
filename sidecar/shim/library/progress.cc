// A one-sided operation over tcp that doesn't fit in one message is continued by a progress function, as is one whose
// answer found no resources (opal/mca/btl/base/btl_base_am_rdma.c). Open MPI registers that function with the first window of
// the process and doesn't notice that the end of a session unregisters all: in a later epoch such operations would
// never complete. Here every window registers it; MPI ignores what is registered already.
#include <atomic>
#include <cstdint>

#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/export.h"

using namespace bsp::shim;  // NOLINT

namespace {

using Progress = int (*)();

std::atomic<Progress> one_sided = nullptr;
thread_local bool creating = false;

int register_progress(Progress function) {
  static const auto next = reinterpret_cast<int (*)(Progress)>(find_real("opal_progress_register"));
  return next != nullptr ? next(function) : -1;
}

}  // namespace

extern "C" BSP_EXPORT int opal_progress_register(Progress function) {
  if (creating) one_sided = function;
  return register_progress(function);
}

extern "C" BSP_EXPORT int opal_btl_base_am_rdma_create(void* transport, std::uint32_t flags, bool no_registration,
                                                       void** module) {
  using Create = int (*)(void*, std::uint32_t, bool, void**);
  static const auto next = reinterpret_cast<Create>(find_real("opal_btl_base_am_rdma_create"));
  if (next == nullptr) return -1;
  creating = true;
  const int rc = next(transport, flags, no_registration, module);
  creating = false;
  if (const Progress function = one_sided) register_progress(function);
  return rc;
}
