#include "sidecar/shim/library/deep_binding.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "crds/names.h"
#include "sidecar/shim/library/internal_calls.h"
#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/loaded_library.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/run_dir.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

using Bases = std::unordered_set<ElfW(Addr)>;

struct Range {
  ElfW(Addr) begin = 0, end = 0;
  [[nodiscard]] bool holds(ElfW(Addr) address) const { return address >= begin && address < end; }
};

Range range_of(const dl_phdr_info& info) {
  Range range{.begin = ~ElfW(Addr){0}, .end = 0};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    range.begin = std::min(range.begin, info.dlpi_addr + part.p_vaddr);
    range.end = std::max(range.end, info.dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  return range;
}

// Whose functions the shim's replace.
bool is_replaced(std::string_view library) {
  for (const std::string_view name : {"libmpi", "libopen-pal.so", "libpmix.so", "libc.so", "linux-vdso.so"})
    if (library.starts_with(name)) return true;
  return false;
}

bool is_name_of_mpi(std::string_view name) {
  for (const std::string_view prefix : {"MPI_", "PMPI_", "ompi_", "opal_"})
    if (name.starts_with(prefix)) return true;
  return false;
}

// What is loaded, as one look at the loader's list finds it.
struct Process {
  std::unordered_map<std::string_view, ElfW(Addr)> functions;  // the shim's, by name
  std::vector<Range> replaced;
  Bases bases;

  static Process look() {
    Process process;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* opaque) {
          static_cast<Process*>(opaque)->add(*info);
          return 0;
        },
        &process);
    return process;
  }

 private:
  void add(const dl_phdr_info& info) {
    bases.insert(info.dlpi_addr);
    if (is_replaced(file_name(info))) replaced.push_back(range_of(info));
    if (range_of(info).holds(reinterpret_cast<ElfW(Addr)>(&state))) add_shim(describe(info));
  }
  void add_shim(const LoadedLibrary& shim) {
    for (std::size_t i = 0; i < shim.symbol_count; ++i) {
      const ElfW(Sym)& symbol = shim.symbols[i];
      const char* const name = shim.names + symbol.st_name;
      // C++ templates have weak symbols.
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF &&
          !std::string_view(name).starts_with("_Z"))
        functions.emplace(name, shim.base + symbol.st_value);
    }
  }
};

void redirect_slots(const Process& process, const dl_phdr_info& info) {
  const LoadedLibrary library = describe(info);
  if (library.symbols == nullptr || library.names == nullptr) return;
  const Range own = range_of(info);
  // Once `real` is filled in, its own calls of MPI have been bound (internal_calls.h).
  const bool keeps_mpi = state.loaded && is_of_open_mpi(file_name(info));
  const auto bind_all = [&](const ElfW(Rela) * relocations, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes / sizeof *relocations; ++i) {
      const ElfW(Rela)& relocation = relocations[i];
      const std::optional<Slot> kind = kind_of_slot(relocation);
      if (!kind) continue;
      const ElfW(Sym)& symbol = library.symbols[ELF64_R_SYM(relocation.r_info)];
      const std::string_view name = library.names + symbol.st_name;
      const auto function = process.functions.find(name);
      if (function == process.functions.end() || (keeps_mpi && is_name_of_mpi(name))) continue;
      const ElfW(Addr) slot = library.base + relocation.r_offset;
      const ElfW(Addr) now = __atomic_load_n(reinterpret_cast<ElfW(Addr)*>(slot), __ATOMIC_RELAXED);
      // A call's slot leads into the library itself until the first call.
      const bool unbound = *kind == Slot::kCall && symbol.st_shndx == SHN_UNDEF && own.holds(now);
      const bool bound = std::ranges::any_of(process.replaced, [&](const Range& r) { return r.holds(now); });
      if (unbound || bound) point(library, slot, reinterpret_cast<void*>(function->second));
    }
  };
  bind_all(library.calls, library.calls_bytes);
  bind_all(library.data, library.data_bytes);
}

// In the libraries that aren't `known`.
void redirect_new(const Bases& known) {
  const Process process = Process::look();
  std::pair what{&process, &known};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* opaque) {
        const auto& [all, before] = *static_cast<decltype(what)*>(opaque);
        if (!before->contains(info->dlpi_addr)) redirect_slots(*all, *info);
        return 0;
      },
      &what);
}

// A dlopen whose end the shim doesn't see.
struct Unseen {
  std::mutex lock;
  std::atomic<bool> is_there{false};
  Bases known;  // where libraries were before the first of them
};
Unseen unseen;

using Open = decltype(&::dlopen);
Open next_dlopen() {
  static std::atomic<void*> found{nullptr};
  void* next = found;
  if (next == nullptr) found = next = dlsym(RTLD_NEXT, "dlopen");
  return reinterpret_cast<Open>(next);
}

void* open_deeply(const char* path, int flags) {
  const Bases known = Process::look().bases;
  void* const opened = next_dlopen()(path, flags);
  if (opened == nullptr) return nullptr;
  redirect_new(known);
  load_real();
  return opened;
}

// A library that calls MPI_Init before the shim sees it, in its constructor.
__attribute__((destructor)) void refuse_if_passed_by() {
  if (state.initialized) return;
  if (const char* init = std::getenv(names::kEnvInitPid.data()); init != nullptr && std::atoi(init) != getppid())
    return;
  int initialized = 0;
  if (!load_real() || real.Initialized(&initialized) != MPI_SUCCESS || initialized == 0 || !has_run_dir()) return;
  refuse(
      "MPI was initialized past libbspmpi.so, by the constructor of a library that was opened with RTLD_DEEPBIND: each "
      "rank was alone in "
      "its MPI_COMM_WORLD; open it without, or libmpi.so.40 before it");
}

}  // namespace

void bind_deeply_loaded() {
  if (!unseen.is_there) return;
  const std::lock_guard guard(unseen.lock);
  if (!unseen.is_there.exchange(false)) return;
  redirect_new(unseen.known);
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

// The function that continues a call of dlopen with these arguments. The loader tells by the return address whose RUNPATH applies, so only
// where none does may it find the shim's.
extern "C" __attribute__((visibility("hidden"), used)) void* bsp_before_dlopen(const char* path, int flags) {
  bind_deeply_loaded();
  if ((flags & RTLD_DEEPBIND) != 0 && path != nullptr) {
    if (path[0] == '/' && std::strchr(path, '$') == nullptr) return reinterpret_cast<void*>(open_deeply);
    const std::lock_guard guard(unseen.lock);
    if (!unseen.is_there) unseen.known = Process::look().bases;
    unseen.is_there = true;
  }
  return reinterpret_cast<void*>(next_dlopen());
}

BSP_JUMP_AFTER(dlopen, bsp_before_dlopen);
