#include "sidecar/shim/internal_calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "sidecar/shim/file_components.h"
#include "sidecar/shim/message.h"
#include "sidecar/shim/real.h"

namespace bsp::shim {
namespace {

#if defined(__x86_64__)
constexpr unsigned kCallSlot = R_X86_64_JUMP_SLOT;
constexpr unsigned kAddressSlot = R_X86_64_GLOB_DAT;
constexpr unsigned kPointer = R_X86_64_64;
#elif defined(__aarch64__)
constexpr unsigned kCallSlot = R_AARCH64_JUMP_SLOT;
constexpr unsigned kAddressSlot = R_AARCH64_GLOB_DAT;
constexpr unsigned kPointer = R_AARCH64_ABS64;
#endif

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
  targets["dlopen"] = reinterpret_cast<void*>(open_plugin);
  return targets;
}

const Targets& targets() {
  static const Targets made = make_targets();
  return made;
}

// The sections of a loaded library that name the functions it calls.
struct Library {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * calls = nullptr;
  std::size_t calls_bytes = 0;
  const ElfW(Rela) * data = nullptr;
  std::size_t data_bytes = 0;
  ElfW(Addr) relro = 0;  // read-only since the library was loaded
  ElfW(Addr) relro_end = 0;
};

Library describe(const dl_phdr_info& info) {
  Library library;
  library.base = info.dlpi_addr;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + part.p_vaddr);
    if (part.p_type == PT_GNU_RELRO) {
      library.relro = info.dlpi_addr + part.p_vaddr;
      library.relro_end = library.relro + part.p_memsz;
    }
  }
  if (dynamic == nullptr) return library;
  // glibc has already added the load address, musl has not
  const auto at = [&](ElfW(Addr) address) {
    return reinterpret_cast<const void*>(address < library.base ? library.base + address : address);
  };
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        library.symbols = static_cast<const ElfW(Sym)*>(at(dynamic->d_un.d_ptr));
        break;
      case DT_STRTAB:
        library.names = static_cast<const char*>(at(dynamic->d_un.d_ptr));
        break;
      case DT_JMPREL:
        library.calls = static_cast<const ElfW(Rela)*>(at(dynamic->d_un.d_ptr));
        break;
      case DT_PLTRELSZ:
        library.calls_bytes = dynamic->d_un.d_val;
        break;
      case DT_RELA:
        library.data = static_cast<const ElfW(Rela)*>(at(dynamic->d_un.d_ptr));
        break;
      case DT_RELASZ:
        library.data_bytes = dynamic->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return library;
}

void point(const Library& library, ElfW(Addr) slot, void* target) {
  auto* const place = reinterpret_cast<void**>(slot);
  const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  const bool read_only = slot >= library.relro && slot < (library.relro_end & ~(page - 1));
  auto* const start = reinterpret_cast<void*>(slot & ~(page - 1));
  if (read_only && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
    die("can't rebind the MPI library's internal calls: mprotect: %s", std::strerror(errno));
  __atomic_store_n(place, target, __ATOMIC_RELAXED);
  if (read_only) mprotect(start, page, PROT_READ);
}

void bind(const Library& library, const ElfW(Rela) * relocations, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes / sizeof *relocations; ++i) {
    const ElfW(Rela)& relocation = relocations[i];
    const unsigned type = ELF64_R_TYPE(relocation.r_info);
    if (type != kCallSlot && type != kAddressSlot && type != kPointer) continue;
    const char* name = library.names + library.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
    if (auto found = targets().find(name); found != targets().end())
      point(library, library.base + relocation.r_offset, found->second);
  }
}

bool is_of_open_mpi(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return name.starts_with("libmpi.so") || name.starts_with("libopen-pal.so") || name.starts_with("libmca_") ||
         name.starts_with("mca_");
}

struct Bound {
  std::unordered_set<ElfW(Addr)> at;
  unsigned long long unloaded = 0;  // number of libraries unloaded so far: another one may now be at the same address
};

int bind_library(dl_phdr_info* info, std::size_t, void* opaque) {
  Bound& bound = *static_cast<Bound*>(opaque);
  if (info->dlpi_subs != bound.unloaded) bound.at.clear();
  bound.unloaded = info->dlpi_subs;
  if (info->dlpi_name == nullptr || !is_of_open_mpi(info->dlpi_name)) return 0;
  if (!bound.at.insert(info->dlpi_addr).second) return 0;
  const Library library = describe(*info);
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

void bind_internal_calls() {
  static std::mutex lock;
  static Bound bound;
  std::lock_guard guard(lock);
  dl_iterate_phdr(bind_library, &bound);
}

}  // namespace bsp::shim
