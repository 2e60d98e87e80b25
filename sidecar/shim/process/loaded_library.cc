#include "sidecar/shim/process/loaded_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "sidecar/shim/process/message.h"

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

// The number of symbols is in DT_HASH, or follows from the last chain of DT_GNU_HASH: words of 32 bits for the numbers of
// buckets, of symbols that aren't hashed, of the filter's words, and its shift; the filter; the buckets; the chains, whose
// last entry is odd.
std::size_t count_symbols(const std::uint32_t* hash, const std::uint32_t* gnu_hash) {
  if (hash != nullptr) return hash[1];
  if (gnu_hash == nullptr) return 0;
  const std::uint32_t bucket_count = gnu_hash[0];
  const std::uint32_t unhashed = gnu_hash[1];
  const std::uint32_t* const buckets = gnu_hash + 4 + gnu_hash[2] * (sizeof(ElfW(Addr)) / sizeof *gnu_hash);
  const std::uint32_t* const chains = buckets + bucket_count;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < bucket_count; ++i) last = std::max(last, buckets[i]);
  if (last < unhashed) return unhashed;
  while ((chains[last - unhashed] & 1) == 0) ++last;
  return last + 1;
}

ElfW(Addr) start_of_page(ElfW(Addr) address) { return address & ~(static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE)) - 1); }

int protection_at(const dl_phdr_info& info, const void* address) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    const auto offset = reinterpret_cast<ElfW(Addr)>(address) - info.dlpi_addr - part.p_vaddr;
    if (part.p_type != PT_LOAD || offset >= part.p_memsz) continue;
    return ((part.p_flags & PF_R) != 0 ? PROT_READ : 0) | ((part.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
           ((part.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
  }
  return PROT_READ;
}

std::string_view name_in(std::string_view path) { return path.substr(path.rfind('/') + 1); }  // npos + 1 is 0

}  // namespace

std::string_view file_name(const dl_phdr_info& info) {
  return name_in(info.dlpi_name != nullptr ? info.dlpi_name : "");
}

std::string_view file_name_of(const void* code) {
  Dl_info info{};
  return name_in(dladdr(code, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "");
}

LoadedLibrary describe(const dl_phdr_info& info) {
  LoadedLibrary library;
  library.base = info.dlpi_addr;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + part.p_vaddr);
    if (part.p_type == PT_GNU_RELRO) {
      library.read_only = info.dlpi_addr + part.p_vaddr;
      library.read_only_end = start_of_page(library.read_only + part.p_memsz);
    }
  }
  if (dynamic == nullptr) return library;
  // glibc has already added the load address, musl has not
  const auto at = [&](ElfW(Addr) address) {
    return reinterpret_cast<const void*>(address < library.base ? library.base + address : address);
  };
  const void* hash = nullptr;
  const void* gnu_hash = nullptr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        library.symbols = static_cast<const ElfW(Sym)*>(at(dynamic->d_un.d_ptr));
        break;
      case DT_STRTAB:
        library.names = static_cast<const char*>(at(dynamic->d_un.d_ptr));
        break;
      case DT_HASH:
        hash = at(dynamic->d_un.d_ptr);
        break;
      case DT_GNU_HASH:
        gnu_hash = at(dynamic->d_un.d_ptr);
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
  library.symbols_protection = protection_at(info, library.symbols);
  library.symbol_count =
      count_symbols(static_cast<const std::uint32_t*>(hash), static_cast<const std::uint32_t*>(gnu_hash));
  return library;
}

void while_writable(ElfW(Addr) start, ElfW(Addr) end, int protection, const std::function<void()>& change) {
  const ElfW(Addr) first_page = start_of_page(start);
  auto* const first = reinterpret_cast<void*>(first_page);
  const std::size_t bytes = end - first_page;
  if (mprotect(first, bytes, protection | PROT_WRITE) != 0)
    die("can't redirect the MPI library's symbols: mprotect: %s", std::strerror(errno));
  change();
  mprotect(first, bytes, protection);
}

std::optional<Slot> kind_of_slot(const ElfW(Rela) & relocation) {
  switch (ELF64_R_TYPE(relocation.r_info)) {
    case kCallSlot:
      return Slot::kCall;
    case kAddressSlot:
    case kPointer:
      return Slot::kAddress;
    default:
      return std::nullopt;
  }
}

void point(const LoadedLibrary& library, ElfW(Addr) slot, void* target) {
  const auto store = [&] { __atomic_store_n(reinterpret_cast<void**>(slot), target, __ATOMIC_RELAXED); };
  if (slot >= library.read_only && slot < library.read_only_end)
    while_writable(slot, slot + sizeof target, PROT_READ, store);
  else
    store();
}

}  // namespace bsp::shim
