#include "sidecar/shim/library/internal_calls.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "sidecar/shim/library/file_components.h"
#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/loaded_library.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

using Targets = std::unordered_map<std::string_view, void*>;

// Open MPI's own queries of MPI's state must come here: in a session MPI itself would answer "not initialised" and
// "not finalised", and its MPI_Abort ends more than this rank.
constexpr std::string_view kAnsweredByShim[] = {"Initialized", "Finalized", "Abort"};

// libmpi functions that the Fortran bindings must call here (fortran.h), while libmpi itself must not.
constexpr const char* kReplacedForFortran[] = {
    "ompi_attr_create_keyval_fint", "ompi_attr_create_keyval_aint", "ompi_attr_set_fint",     "ompi_attr_set_aint",
    "ompi_attr_get_fint",           "ompi_attr_get_aint",           "ompi_errhandler_create", "ompi_info_get",
    "ompi_info_get_valuelen",       "ompi_info_get_nthkey"};

// MPI-1's names (old_names.cc), which mpi.h hides.
constexpr const char* kOldNames[] = {"PMPI_Errhandler_create", "PMPI_Errhandler_get", "PMPI_Errhandler_set",
                                     "PMPI_Type_extent",       "PMPI_Type_hindexed",  "PMPI_Type_hvector",
                                     "PMPI_Type_lb",           "PMPI_Type_struct",    "PMPI_Type_ub"};

void* open_plugin(const char* path, int flags);

// Open MPI takes a shared segment whose creator has its own PID for its own, and names files by PID. But the containers of a pod number
// their processes alike. So among ranks that share memory it learns a number that only this one has.
pid_t own_number() { return state.shares_memory ? state.rank + 1 : ::getpid(); }

Targets make_targets() {
  Targets targets;
#define BSP_TARGET(name)                                      \
  targets["MPI_" #name] = reinterpret_cast<void*>(real.name); \
  targets["PMPI_" #name] = reinterpret_cast<void*>(real.name);
  BSP_REAL_FUNCTIONS(BSP_TARGET)
#undef BSP_TARGET
  for (const std::string_view name : kAnsweredByShim) {
    targets.erase("MPI_" + std::string(name));
    targets.erase("PMPI_" + std::string(name));
  }
  for (const char* name : kOldNames)
    if (void* own = find_real(name)) targets[name] = targets[name + 1] = own;
  for (const char* name : kReplacedForFortran)
    if (void* own = find_real(name)) targets[name] = own;
  for (const auto& [name, own] : file_component_calls()) targets[name] = own;
  targets["getpid"] = reinterpret_cast<void*>(own_number);
  targets["dlopen"] = reinterpret_cast<void*>(open_plugin);
  return targets;
}

const Targets& targets() {
  static const Targets made = make_targets();
  return made;
}

void bind(const LoadedLibrary& library, const ElfW(Rela) * relocations, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes / sizeof *relocations; ++i) {
    const ElfW(Rela)& relocation = relocations[i];
    if (!kind_of_slot(relocation)) continue;
    const char* name = library.names + library.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
    if (auto found = targets().find(name); found != targets().end())
      point(library, library.base + relocation.r_offset, found->second);
  }
}

struct Bound {
  std::unordered_set<ElfW(Addr)> at;
  unsigned long long unloaded = 0;  // number of libraries unloaded so far: another one may now be at the same address
};

int bind_library(dl_phdr_info* info, std::size_t, void* opaque) {
  Bound& bound = *static_cast<Bound*>(opaque);
  if (info->dlpi_subs != bound.unloaded) bound.at.clear();
  bound.unloaded = info->dlpi_subs;
  if (!is_of_open_mpi(file_name(*info))) return 0;
  if (!bound.at.insert(info->dlpi_addr).second) return 0;
  const LoadedLibrary library = describe(*info);
  if (library.symbols == nullptr || library.names == nullptr) return 0;
  bind(library, library.calls, library.calls_bytes);
  bind(library, library.data, library.data_bytes);
  return 0;
}

// Replaces dlopen in Open MPI. Open MPI passes absolute plugin paths, so it doesn't matter whose RUNPATH applies.
void* open_plugin(const char* path, int flags) {
  void* const opened = ::dlopen(path, flags);
  if (opened != nullptr) bind_internal_calls();
  return opened;
}

}  // namespace

bool is_of_open_mpi(std::string_view name) {
  return name.starts_with("libmpi.so") || name.starts_with("libopen-pal.so") || name.starts_with("libmca_") ||
         name.starts_with("mca_");
}

void bind_internal_calls() {
  static std::mutex lock;
  static Bound bound;
  std::lock_guard guard(lock);
  targets();  // before the loader is locked: it is asked for them
  dl_iterate_phdr(bind_library, &bound);
}

}  // namespace bsp::shim
