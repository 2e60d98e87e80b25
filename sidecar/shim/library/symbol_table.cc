#include "sidecar/shim/library/symbol_table.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <unordered_map>

#include "sidecar/shim/library/deep_binding.h"
#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/loaded_library.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

using Functions = std::unordered_map<std::string_view, void*>;

Functions& originals() {
  static Functions functions;
  return functions;
}

void* open_this_library() {
  Dl_info info{};
  if (dladdr(&state, &info) == 0) return nullptr;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

bool is_function_of_mpi(const ElfW(Sym) & symbol, std::string_view name) {
  return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF &&
         (name.starts_with("MPI") || name.starts_with("PMPI"));
}

LoadedLibrary find_mpi() {
  LoadedLibrary mpi;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        if (!file_name(*info).starts_with("libmpi.so")) return 0;
        *static_cast<LoadedLibrary*>(found) = describe(*info);
        return 1;
      },
      &mpi);
  return mpi;
}

// Whether libraries have been loaded since the last call.
bool has_new_libraries() {
  static std::atomic<unsigned long long> seen{0};
  unsigned long long loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* count) {
        *static_cast<unsigned long long*>(count) = info->dlpi_adds;
        return 1;
      },
      &loaded);
  return seen.exchange(loaded) != loaded;
}

// Sanitizers take symbols themselves.
BSP_UNSANITIZED void* next_dlsym() {
  static void* found = nullptr;
  if (void* const next = __atomic_load_n(&found, __ATOMIC_RELAXED)) return next;
  constexpr const char* kVersions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};  // calls no instrumented function
  for (const char* version : kVersions) {
    void* const next = dlvsym(RTLD_NEXT, "dlsym", version);
    __atomic_store_n(&found, next, __ATOMIC_RELAXED);
    if (next != nullptr) return next;
  }
  die("the C library has no dlsym: glibc is required");
}

}  // namespace

void redirect_symbols() {
  void* const shim = open_this_library();
  const LoadedLibrary mpi = find_mpi();
  if (shim == nullptr || mpi.symbol_count == 0) return;
  auto* const symbols = const_cast<ElfW(Sym)*>(mpi.symbols);
  const auto start = reinterpret_cast<ElfW(Addr)>(symbols);
  while_writable(start, start + mpi.symbol_count * sizeof *symbols, mpi.symbols_protection, [&] {
    for (std::size_t i = 0; i < mpi.symbol_count; ++i) {
      const std::string_view name = mpi.names + symbols[i].st_name;
      if (!is_function_of_mpi(symbols[i], name)) continue;
      void* const own = dlsym(shim, name.data());
      if (own == nullptr) continue;
      originals()[name] = reinterpret_cast<void*>(mpi.base + symbols[i].st_value);
      // The loader adds the library's base, modulo the width of an address.
      __atomic_store_n(&symbols[i].st_value, reinterpret_cast<ElfW(Addr)>(own) - mpi.base, __ATOMIC_RELEASE);
    }
  });
}

void* redirected(std::string_view symbol) {
  const auto found = originals().find(symbol);
  return found != originals().end() ? found->second : nullptr;
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

// The function that continues a call of dlsym with these arguments.
extern "C" BSP_UNSANITIZED __attribute__((visibility("hidden"), used)) void* bsp_before_dlsym(void* handle) {
  if (handle != RTLD_DEFAULT && handle != RTLD_NEXT) {
    bind_deeply_loaded();
    if (!state.loaded && has_new_libraries()) load_real(Lookup::kUnlessBusy);
  }
  return next_dlsym();
}

BSP_JUMP_AFTER(dlsym, bsp_before_dlsym);
