// A library that is loaded in this process, as its dynamic section describes it.
#pragma once

#include <link.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

namespace bsp::shim {

struct LoadedLibrary {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  std::size_t symbol_count = 0;
  int symbols_protection = 0;  // of their memory, as for mprotect
  const char* names = nullptr;
  const ElfW(Rela) * calls = nullptr;  // slots of functions that it calls
  std::size_t calls_bytes = 0;
  const ElfW(Rela) * data = nullptr;  // other places that hold addresses
  std::size_t data_bytes = 0;
  ElfW(Addr) read_only = 0;  // whole pages that became read-only after the library was loaded
  ElfW(Addr) read_only_end = 0;
};

// "libmpi.so.40", say; "" for the program itself.
std::string_view file_name(const dl_phdr_info& info);
// The same of the one that holds this code; "" if none does.
std::string_view file_name_of(const void* code);
// `symbols` and `names` are nullptr if the library has none.
LoadedLibrary describe(const dl_phdr_info& info);

// What the loader puts into a library for a symbol: a function to call, or an address to use. Nothing: neither.
enum class Slot { kCall, kAddress };
std::optional<Slot> kind_of_slot(const ElfW(Rela) & relocation);

// Other threads may read the slot.
void point(const LoadedLibrary& library, ElfW(Addr) slot, void* target);

// Makes the pages of [start, end), which have `protection`, writable during `change`. Other threads may read them.
void while_writable(ElfW(Addr) start, ElfW(Addr) end, int protection, const std::function<void()>& change);

}  // namespace bsp::shim
