#include "sidecar/shim/library/kept_topology.h"

#include <dlfcn.h>
#include <link.h>
#include <pmix.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

// `topology` of PMIx's pmix_globals: where that is in it depends on how PMIx was built.
pmix_topology_t* find_kept(const pmix_topology_t& known) {
  void* globals = find_in_mpi("pmix_globals");
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  if (globals == nullptr ||
      dladdr1(globals, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)), RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr)
    return nullptr;
  auto** const words = static_cast<void**>(globals);
  for (std::size_t i = 1; i < symbol->st_size / sizeof(void*); ++i)
    if (words[i] == known.topology && words[i - 1] != nullptr &&
        std::strcmp(static_cast<const char*>(words[i - 1]), known.source) == 0)
      return reinterpret_cast<pmix_topology_t*>(&words[i - 1]);
  return nullptr;
}

// PMIx must be initialised.
pmix_topology_t* kept_topology() {
  using Load = decltype(&PMIx_Load_topology);
  static const auto load = reinterpret_cast<Load>(find_in_mpi("PMIx_Load_topology"));
  if (load == nullptr || !frees_kept_topology(pmix_version())) return nullptr;
  pmix_topology_t known{nullptr, nullptr};
  if (load(&known) != PMIX_SUCCESS || known.topology == nullptr || known.source == nullptr) return nullptr;
  pmix_topology_t* const kept = find_kept(known);
  if (kept == nullptr)
    refuse("%.40s frees its topology twice, and the shim can't find where it keeps it: use another release of Open MPI",
           pmix_version());
  std::free(known.source);
  return kept;
}

}  // namespace
}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

extern "C" BSP_EXPORT pmix_status_t PMIx_Finalize(const pmix_info_t* info, size_t count) {
  static const auto next = reinterpret_cast<decltype(&PMIx_Finalize)>(find_real("PMIx_Finalize"));
  if (next == nullptr) return PMIX_ERR_NOT_SUPPORTED;
  pmix_topology_t* const kept = state.ring != nullptr ? kept_topology() : nullptr;
  const pmix_topology_t was =
      kept != nullptr ? std::exchange(*kept, {nullptr, nullptr}) : pmix_topology_t{nullptr, nullptr};
  const pmix_status_t status = next(info, count);
  if (kept != nullptr && kept->topology == nullptr) *kept = was;
  return status;
}
